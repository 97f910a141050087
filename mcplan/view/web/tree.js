// The panel of the search tree. A child that leads on stays in its parent's column; other branches go one column in.
const tree = data.tree, STATES = {
  path: ["#1f6fd0", "on the plan"], expanded: ["#7d8798", "expanded"], open: ["transparent", "proven, not expanded"],
};
const KINDS = ["#d9534f", "#e08a1e", "#8e5bb5", "#a0703c", "#c2478d", "#3f8f8f", "#7a8a2e", "#556", "#999"];
const MEANT = {
  reach: "a contact is out of reach", equilibrium: "the contacts do not balance the robot", load: "a contact cannot bear the load",
  collision: "bodies would come too close", passage: "bodies come too close along the path", friction: "a contact would slip",
  continuity: "the contacts that stay block the path there", torque: "a joint is too weak", "joint limit": "a joint cannot go so far",
  clearance: "a patch in the air comes too close",
};
const crossColour = kind => KINDS[tree.kinds.findIndex(([name]) => name === kind) % KINDS.length];
const children = tree.nodes.map(() => []), refused = tree.nodes.map(() => []), size = tree.nodes.map(() => 1);
const onPath = new Set([...tree.nodes.keys()].filter(i => tree.nodes[i].state === "path"));
tree.nodes.forEach((node, i) => { if (node.parent !== null) children[node.parent].push(i); });
for (let i = tree.nodes.length - 1; i > 0; i--) if (tree.nodes[i].parent !== null) size[tree.nodes[i].parent] += size[i];
tree.rejected.forEach((move, i) => refused[move.parent].push(i));
let kind = null, chosen = null, rows = [], onlyPlan = false;

function dot(state) {
  const mark = element("span", undefined, "dot");
  mark.style.background = STATES[state][0];
  mark.style.border = "2px solid " + (state === "open" ? "#8a93a3" : STATES[state][0]);
  return mark;
}
function row(depth, mark, text, right, name, choose) {
  const made = element("div", undefined, "row " + name);
  made.style.paddingLeft = 10 + 12 * Math.min(depth, 14) + "px";
  const what = element("span", text, "what");
  what.title = text;
  made.append(mark, what);
  if (right) made.append(element("span", right, "h"));
  made.onclick = () => { pick(made); };
  made.choose = choose;
  rows.push(made);
  return made;
}
function fill() {
  const list = get("rows"), made = document.createDocumentFragment(), stack = [];
  rows = [];
  const roots = [...tree.nodes.keys()].filter(i => tree.nodes[i].parent === null);
  for (const root of roots.reverse()) stack.push([root, 0, false]);
  while (stack.length) {
    const [i, depth, branch] = stack.pop(), node = tree.nodes[i];
    if (onlyPlan && node.state !== "path") continue;
    const item = row(depth, dot(node.state), i + "  " + node.move, "h " + node.h.toFixed(2), node.state, () => showNode(i));
    if (branch) { item.prepend(element("span", "↳", "turn")); item.title = "from node " + node.parent; }
    if (node.stance !== null) {
      const link = element("a", "stance " + node.stance);
      link.title = "show it on the time line";
      link.onclick = event => { event.stopPropagation(); leaveTree(); pause(); seek(node.stance); };
      item.append(link);
    }
    item.node = i;
    made.append(item);
    if (get("refused").checked && !onlyPlan) {
      for (const k of refused[i].filter(k => kind === null || tree.rejected[k].kind === kind)) {
        const move = tree.rejected[k], cross = element("span", "✕", "cross");
        cross.style.color = crossColour(move.kind);
        made.append(row(depth + 1, cross, move.move + ": " + move.reason, "", "rejected", () => showRejected(k)));
      }
    }
    // the branch that leads on: the plan's, else the largest; it is listed last, in this node's own column
    const order = [...children[i]].sort((a, b) => (onPath.has(b) - onPath.has(a)) || size[b] - size[a] || a - b);
    order.forEach((child, k) => stack.push([child, k === 0 ? depth : depth + 1, k > 0]));
  }
  list.replaceChildren(made);
}
function pick(item) {
  for (const other of rows) other.classList.remove("chosen");
  item.classList.add("chosen");
  item.scrollIntoView({block: "nearest"});
  chosen = item;
  item.choose();
}
function leaveTree() {
  hideTried();
  if (chosen) chosen.classList.remove("chosen");
  chosen = null;
}
function hideTried() {
  labels.tried = [];
  for (const move of tree.rejected) for (const t of move.tried) {
    nodeAt(t.node).visible = false;
  }
  viewer.set_dirty();
}
function posture(i) {
  pause();
  if (tree.nodes[i].time !== null) jump(tree.nodes[i].time);
  hideTried();
}
function showNode(i) {
  const node = tree.nodes[i];
  posture(i);
  const lines = node.time === null ? ["too many nodes: this posture is not in the page"] : [];
  showFacts({
    title: "node " + i + ": " + node.move, lines,
    contacts: node.contacts,
    values: [["state", STATES[node.state][1]], ["moves so far (g)", node.g.toFixed(0)], ["moves to go (h)", node.h.toFixed(2)],
             ["came from node", node.parent === null ? "none" : String(node.parent)],
             ["children", String(children[i].length)], ["rejected moves", String(refused[i].length)]],
  });
}
function showRejected(k) {
  const move = tree.rejected[k];
  posture(move.parent);
  for (const t of move.tried) {
    const object = nodeAt(t.node);
    object.position.set(...t.p);
    object.quaternion.set(...t.xyzw);
    object.visible = true;
    labels.tried.push({text: t.patch + ", tried", object});
  }
  viewer.set_dirty();
  drawLabels();
  showFacts({
    title: "rejected: " + move.move, lines: move.reason.split("; "),
    values: [["reason", move.kind], ["stopped at", move.stage], ["posture shown", "node " + move.parent],
             ...(move.tried.length ? [["would have touched", "red"]] : [])],
  });
}
function counts() {
  const box = element("div", undefined, "counts");
  for (const [name, count] of tree.kinds) {
    const line = element("div"), cross = element("span", "✕", "cross");
    cross.style.color = crossColour(name);
    line.dataset.kind = name;
    line.title = "show only these";
    const meant = MEANT[name] || name;
    line.append(cross, element("b", String(count)), element("span", meant));
    line.onclick = () => {
      kind = kind === name ? null : name;
      for (const other of box.children) other.classList.toggle("chosen", other.dataset.kind === kind);
      get("refused").checked = true;
      fill();
    };
    box.append(line);
  }
  for (const [reason, count] of tree.skipped) {
    const line = element("div");
    line.append(element("span", "–", "cross"), element("b", String(count)), element("span", "skipped: " + reason));
    box.append(line);
  }
  return box;
}
(function build() {
  document.body.classList.add("with-tree");
  dispatchEvent(new Event("resize"));
  const header = element("header"), legend = element("div", undefined, "legend");
  header.append(element("h2", "search tree: " + tree.nodes.length + " stances, " + tree.rejected.length + " rejected moves, "
    + tree.calls + " postures"));
  if (tree.failure) header.append(element("div", tree.failure, "failure"));
  for (const state of Object.keys(STATES)) {
    const item = element("span");
    item.append(dot(state), " " + STATES[state][1]);
    legend.append(item);
  }
  legend.append(element("span", "h: about so many moves left"));
  header.append(legend, counts());
  const choices = element("div", undefined, "choices"), label = element("label"), box = element("input");
  box.type = "checkbox";
  box.id = "refused";
  box.checked = tree.rejected.length <= 300;
  box.onchange = fill;
  label.append(box, " rejected moves");
  label.title = "the keys up and down go through the list";
  choices.append(label);
  if (data.bands.length) {
    const only = element("label"), which = element("input");
    which.type = "checkbox";
    which.id = "only-plan";
    which.onchange = () => { onlyPlan = which.checked; fill(); };
    only.append(which, " only the plan");
    choices.append(only);
    button(choices, "to-plan", "go to the plan", "back to the time line", () => { leaveTree(); seek(0); });
  }
  header.append(choices);
  const list = element("div");
  list.id = "rows";
  get("tree").append(header, list);
  fill();
  addEventListener("keydown", event => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const at = rows.indexOf(chosen), to = event.key === "ArrowDown" ? at + 1 : Math.max(at - 1, 0);
    if (rows[to]) pick(rows[to]);
  });
  whenTimeChanges(() => { if (!inTree() && (chosen || labels.tried.length)) leaveTree(); });
  const opener = button(get("tools"), "tree-button", "tree", "the search tree", () => {
    const narrow = innerWidth <= 800;
    document.body.classList.toggle(narrow ? "tree-open" : "with-tree");
    press(opener, document.body.classList.contains(narrow ? "tree-open" : "with-tree"));
    dispatchEvent(new Event("resize"));
  });
  press(opener, innerWidth > 800);
  if (!data.bands.length) pick(rows.find(item => item.node === tree.first));
})();
