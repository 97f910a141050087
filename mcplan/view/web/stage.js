// The scene: its motion, light and shadow, a grid, and cameras.
// a track: times of its keys, then their values
const TRACK_KINDS = {position: THREE.VectorKeyframeTrack, scale: THREE.VectorKeyframeTrack, quaternion: THREE.QuaternionKeyframeTrack,
                     visible: THREE.BooleanKeyframeTrack};
for (const {path, tracks} of data.tracks) {
  const made = tracks.map(({name, keys, data: text}) => {
    const numbers = new Float32Array(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer), values = numbers.subarray(keys);
    return new TRACK_KINDS[name]("." + name, numbers.subarray(0, keys), name === "visible" ? Array.from(values, v => v > 0) : values);
  });
  const clip = new THREE.AnimationClip(path, -1, made), action = viewer.animator.mixer.clipAction(clip, nodeAt(path));
  action.clampWhenFinished = true;
  viewer.animator.actions.push(action);
}
data.tracks = null;
viewer.gui.domElement.style.zIndex = 3;
viewer.gui.domElement.style.right = "calc(12px + var(--side))";
viewer.gui.domElement.style.top = "44px";

const centre = nodeAt("com/ball");
function centreOfMass() { centre.updateWorldMatrix(true, false); return new THREE.Vector3().setFromMatrixPosition(centre.matrixWorld); }

// -- light ---------------------------------------------------------------------------------------------------------
const sun = new THREE.DirectionalLight(0xffffff, 0.4);
sun.castShadow = true;
sun.shadow.mapSize.set(2048, 2048);
sun.shadow.bias = -0.0004;
sun.shadow.normalBias = 0.012;
Object.assign(sun.shadow.camera, {left: -2.6, right: 2.6, top: 2.6, bottom: -2.6, near: 0.5, far: 16});
viewer.scene.add(sun, sun.target);
for (const [name, strength] of [["PointLightNegativeX", 0.1], ["PointLightPositiveX", 0.1], ["FillLight", 0.2], ["AmbientLight", 0.56]]) {
  const light = viewer.scene_tree.find(["Lights", name, "<object>"]).object;
  light.intensity = strength;
}
function meshesIn(root) { const found = []; root.traverse(o => { if (o.isMesh) found.push(o); }); return found; }
// surfaces take shadows and cast none: a ceiling would leave the robot in the dark
const slabs = meshesIn(nodeAt("environment/surfaces")), around = ["surfaces", "obstacles", "objects"].flatMap(kind => meshesIn(nodeAt("environment/" + kind)));
for (const mesh of slabs) mesh.castShadow = false;
viewer.scene.updateMatrixWorld(true);
for (const mesh of meshesIn(nodeAt("environment/obstacles"))) {  // nor does an obstacle over its head
  mesh.castShadow = new THREE.Box3().setFromObject(mesh).min.y < centreOfMass().y;
}
for (const name of ["forces", "cones", "support", "com", "trails", "stiles", "tried"]) {
  for (const mesh of meshesIn(nodeAt(name))) { mesh.castShadow = false; mesh.receiveShadow = false; }
}
function light() {  // the scene's own axes are the robot's: x, y, height
  const at = centre.position;
  sun.position.set(at.x + 2.2, at.y + 1.6, at.z + 6);
  sun.target.position.copy(at);
}

// -- grid ------------------------------------------------------------------------------------------------------------
const grid = new THREE.GridHelper(8, 16, 0x445066, 0x445066);
grid.material.transparent = true;
grid.material.opacity = 0.16;
grid.material.depthWrite = false;
grid.rotation.x = Math.PI / 2;
grid.position.set(Math.round(data.camera[0][0]), Math.round(data.camera[0][1]), data.ground + 0.003);
viewer.scene.add(grid);

// -- camera ----------------------------------------------------------------------------------------------------------
const VIEWS = {
  front: [1, 0.12, 0], left: [0, 0.12, -1], back: [-1, 0.12, 0], right: [0, 0.12, 1], top: [0.02, 1, 0],
};
let following = false, last = centreOfMass();
function lookFrom(name) {
  if (name === "home") {
    lookHome(1 - foot() / innerHeight);
    return;
  }
  const at = centreOfMass(), target = new THREE.Vector3(at.x, at.y - 0.12, at.z);
  const distance = clamp(viewer.camera.position.distanceTo(viewer.controls.target), 1.5, 4);
  look(target, target.clone().addScaledVector(new THREE.Vector3(...VIEWS[name]).normalize(), distance));
}
function follow() {
  const at = centreOfMass();
  if (following && at.distanceTo(last) > 1e-6) {
    const move = at.clone().sub(last);
    viewer.camera.position.add(move);
    viewer.controls.target.add(move);
    viewer.set_dirty();
  }
  last = at;
}
function foot() {  // pixels that the panel below covers
  const dock = get("dock");
  return document.body.classList.contains("still") || dock.style.display === "none" ? 0 : innerHeight - dock.getBoundingClientRect().top;
}
function makeRoom() {  // keep the target in the middle of the area that panels leave free
  const width = get("meshcat-pane").offsetWidth, height = innerHeight;
  document.body.style.setProperty("--foot", foot() + "px");
  viewer.camera.setViewOffset(width, height, 0, foot() / 2, width, height);
  viewer.set_dirty();
}

// -- occlusion: objects between the eye and the robot ----------------------------------------------------------------
const ray = new THREE.Raycaster(), HIDDEN = 3;
const watched = nodeAt("robot").children.map(link => {  // of each link its largest body
  const bodies = link.children.filter(child => child.name.startsWith("shape")).flatMap(meshesIn);
  for (const mesh of bodies) mesh.geometry.computeBoundingSphere();
  return bodies.sort((one, two) => two.geometry.boundingSphere.radius - one.geometry.boundingSphere.radius)[0];
}).filter(mesh => mesh);
let fading = true;
function fade() {  // objects that hide three bodies, at their middle or above it, become transparent
  const eye = viewer.camera.getWorldPosition(new THREE.Vector3()), hits = new Map(), at = new THREE.Vector3();
  if (fading) {
    for (const body of watched) {
      body.updateWorldMatrix(true, false);
      const {center, radius} = body.geometry.boundingSphere;
      for (const above of [0, 0.8 * radius]) {
        const sight = at.copy(center).applyMatrix4(body.matrixWorld).add(new THREE.Vector3(0, above, 0)).sub(eye), length = sight.length();
        ray.set(eye, sight.normalize());
        ray.far = length - 0.05;
        for (const mesh of new Set(ray.intersectObjects(around, false).map(hit => hit.object))) hits.set(mesh, (hits.get(mesh) || 0) + 1);
      }
    }
  }
  for (const mesh of around) {
    const opacity = hits.get(mesh) >= HIDDEN ? 0.16 : 1, material = mesh.material;
    if (material.opacity !== opacity) {
      material.opacity = opacity;
      material.transparent = opacity < 1;
      material.depthWrite = opacity === 1;
      material.needsUpdate = true;
      viewer.set_dirty();
    }
  }
}
background();
light();
