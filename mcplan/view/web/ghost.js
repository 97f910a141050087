// The posture that the motion goes to, as a pale copy of the robot.
const ghost = {root: null, at: -1, on: false};
ghost.show = on => {
  ghost.on = on;
  if (on && !ghost.root) build();
  if (ghost.root) ghost.root.visible = on;
  update(clock.t);

  function build() {
    ghost.root = new THREE.Group();
    const skin = new THREE.MeshBasicMaterial({color: 0x5b8fd6, transparent: true, opacity: 0.22, depthWrite: false});
    for (const link of data.ghost.links) {
      const copy = new THREE.Group(), source = nodeAt("robot/" + link);
      for (const child of source.children) if (child.name.startsWith("shape")) copy.add(child.clone(true));
      copy.traverse(o => { if (o.isMesh) { o.material = skin; o.castShadow = o.receiveShadow = false; } });
      ghost.root.add(copy);
    }
    nodeAt("robot").parent.add(ghost.root);
  }
};
function update(t) {
  if (!ghost.on || !ghost.root) return;
  const span = data.ghost.spans.find(([begin, end]) => t >= begin && t < end);
  const index = span && !inTree() ? span[2] : -1;
  ghost.root.visible = index >= 0;
  if (index < 0 || index === ghost.at) return;
  ghost.at = index;
  data.ghost.poses[index].forEach((pose, i) => {
    ghost.root.children[i].position.set(...pose.slice(0, 3));
    ghost.root.children[i].quaternion.set(...pose.slice(3));
  });
}
whenTimeChanges(update);
