// meshcat's viewer with the scene in it. three.js' axes are x, height, -y.
const THREE = MeshCat.THREE, viewer = new MeshCat.Viewer(get("meshcat-pane"));
for (const text of data.commands) {
  viewer.handle_command_bytearray(Uint8Array.from(atob(text), c => c.charCodeAt(0)));
}
data.commands = null;
viewer.gui.domElement.style.display = "none";
viewer.camera.fov = 38;
function nodeAt(path) { return viewer.scene_tree.find(["meshcat", ...path.split("/")]).object; }
function swapped(p) { return new THREE.Vector3(p[0], p[2], -p[1]); }
