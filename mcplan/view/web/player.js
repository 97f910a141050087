var viewer = new MeshCat.Viewer(document.getElementById("meshcat-pane"));
for (const text of data.commands) {
  viewer.handle_command_bytearray(Uint8Array.from(atob(text), c => c.charCodeAt(0)));
}
viewer.gui.close();
viewer.gui.domElement.style.right = "var(--side)";
// the camera lives in three.js' axes: x, height, -y
const [target, eye] = data.camera.map(p => [p[0], p[2], -p[1]]);
viewer.camera.fov = 38;
viewer.camera.position.set(...eye);
viewer.controls.target.set(...target);
viewer.controls.update();
viewer.set_dirty();

const animator = viewer.animator, slider = get("slider");
let stepTimer = null, listen = () => {};

function resume() { for (const a of animator.actions) { a.paused = false; a.enabled = true; a.play(); } }
function now() { return animator.actions.length ? Math.max(...animator.actions.map(a => a.time)) : 0; }
function jump(t) { resume(); animator.seek(t); }
function seek(t) { jump(Math.min(Math.max(t, 0), data.duration)); listen("time"); show(); }
function playing() { return animator.playing || stepTimer !== null; }
function pause() { animator.pause(); clearInterval(stepTimer); stepTimer = null; }
function play() {
  if (data.stances && (now() > data.duration || now() > data.duration - 1e-3)) seek(0);
  listen("time");
  if (data.stances && !get("smooth").checked) {
    stepTimer = setInterval(() => seek(now() > data.duration - 0.5 ? 0 : Math.round(now()) + 1), 1000);
  } else { resume(); animator.play(); }
}
function toggle() { if (playing()) pause(); else play(); show(); }
function step(by) {
  pause();
  if (!data.stances) { seek(now() + 0.1 * by); return; }
  seek(now() > data.duration ? 0 : Math.round(now()) + by);
}
function bandAt(t) { return data.bands.find(b => t >= b.begin && t < b.end) || data.bands[data.bands.length - 1]; }

function show() {
  const t = Math.min(now(), data.duration), band = bandAt(t), elsewhere = now() > data.duration + 1;
  if (document.activeElement !== slider || playing()) slider.value = t;
  get("time").textContent = elsewhere ? "a node" : data.stances ? "stance " + Math.round(t) + " / " + data.duration
    : t.toFixed(2) + " / " + data.duration.toFixed(2) + " s";
  get("phase").textContent = elsewhere ? "in the search tree" : band ? band.name : "";
  get("play").textContent = playing() ? "❚❚" : "▶︎";
  if (band && band.facts && !elsewhere) tell(band.facts);
}

let told = null;
function tell(facts) {
  if (facts === told) return;
  told = facts;
  const box = get("facts");
  box.replaceChildren(element("h2", facts.title));
  for (const line of facts.lines || []) box.append(element("p", line, "bad"));
  for (const rows of [facts.contacts || [], facts.values || []]) {
    const table = element("table");
    for (const [label, value, name] of rows) {
      const row = element("tr", undefined, name);
      row.append(element("td", label), element("td", value));
      table.append(row);
    }
    box.append(table);
  }
  box.style.display = "block";
}

slider.max = data.duration;
for (const band of data.bands) {
  const div = element("div");
  div.style.left = 100 * band.begin / data.duration + "%";
  div.style.width = 100 * (band.end - band.begin) / data.duration + "%";
  div.style.background = band.colour;
  div.title = band.name;
  get("bands").append(div);
}
if (!data.stances) for (const id of ["back", "forth", "smooth-label"]) get(id).style.display = "none";
if (!data.bands.length) get("line").style.display = "none";
get("play").onclick = toggle;
get("back").onclick = () => step(-1);
get("forth").onclick = () => step(1);
get("smooth").onchange = () => { if (playing()) { pause(); play(); } };
slider.oninput = () => {
  pause();
  const t = Number(slider.value);
  seek(data.stances && !get("smooth").checked ? Math.round(t) : t);
};
addEventListener("keydown", event => {
  if (event.target === slider && event.key !== " ") return;
  if (event.key === " ") { event.preventDefault(); toggle(); }
  if (event.key === "ArrowRight") step(1);
  if (event.key === "ArrowLeft") step(-1);
});
(function refresh() {
  if (data.stances && animator.playing && now() >= data.duration) { pause(); seek(data.duration); }
  show();
  requestAnimationFrame(refresh);
})();
