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

const dark = matchMedia("(prefers-color-scheme: dark)");
function background() {
  const top = dark.matches ? [0.17, 0.2, 0.25] : [0.93, 0.95, 0.98], bottom = dark.matches ? [0.07, 0.08, 0.1] : [0.70, 0.76, 0.84];
  viewer.set_property(["Background"], "top_color", top);
  viewer.set_property(["Background"], "bottom_color", bottom);
}
dark.addEventListener("change", background);
const home = data.camera.map(swapped);
function look(target, eye) {
  viewer.controls.target.copy(target);
  viewer.camera.position.copy(eye);
  viewer.controls.update();
  viewer.set_dirty();
}
function lookHome(free) {  // farther away where panels (a share of the height is free of them) or a narrow window leave less room
  const room = Math.min(free, get("meshcat-pane").offsetWidth / innerHeight * 1.15, 1);
  look(home[0], home[0].clone().add(home[1].clone().sub(home[0]).divideScalar(Math.max(room, 0.45))));
}
