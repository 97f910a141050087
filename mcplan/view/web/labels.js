// Texts at places of the scene: the size of each force, and the names of patches that a rejected move would have put down.
const labels = {on: false, tried: []}, METRES_PER_NEWTON = data.newton;
function labelAt(point, text, name) {
  const seen = point.clone().project(viewer.camera);
  if (seen.z > 1 || Math.abs(seen.x) > 1 || Math.abs(seen.y) > 1) return null;
  const made = element("span", text, name);
  made.style.left = (seen.x + 1) / 2 * get("labels").clientWidth + "px";
  made.style.top = (1 - seen.y) / 2 * innerHeight + "px";
  return made;
}
function drawLabels() {
  const made = [];
  if (labels.on) {
    for (const {name, node} of data.forces) {
      const head = nodeAt(node + "/head"), shaft = nodeAt(node + "/shaft");
      if (!head.visible) continue;
      head.updateWorldMatrix(true, false);
      const force = shaft.scale.z / METRES_PER_NEWTON;
      made.push(labelAt(new THREE.Vector3().setFromMatrixPosition(head.matrixWorld), name + " " + force.toFixed(0) + " N"));
    }
  }
  for (const {text, object} of labels.tried) {
    object.updateWorldMatrix(true, false);
    made.push(labelAt(new THREE.Vector3().setFromMatrixPosition(object.matrixWorld), text, "tried"));
  }
  const shown = made.filter(item => item);
  get("labels").replaceChildren(...shown);
  // texts that would lie on each other move down
  const taken = [];
  for (const item of shown.sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top))) {
    const x = parseFloat(item.style.left), wide = item.offsetWidth;
    let y = parseFloat(item.style.top);
    for (const other of taken) if (Math.abs(other.y - y) < 19 && x < other.x + other.wide && other.x < x + wide) y = other.y + 19;
    item.style.top = y + "px";
    taken.push({x, y, wide});
  }
}
