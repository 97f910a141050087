// The time line: phases as bands, with their names where the mouse is, and buttons around it.
const track = get("track"), tip = get("tip");
function button(host, id, text, title, act) {
  const made = element("button", text);
  made.id = id;
  made.title = title;
  made.setAttribute("aria-label", title);
  made.onclick = () => { act(); made.blur(); };
  host.append(made);
  return made;
}
function press(made, on) { made.setAttribute("aria-pressed", String(on)); }
const bandName = data.stances ? "stance" : "phase";
button(get("steps"), "back", "«", "previous " + bandName + " (Shift+←)", () => stepBand(-1));
button(get("steps"), "frame-back", "‹", "one frame back (←)", () => stepFrame(-1));
const playButton = button(get("steps"), "play", "▶\uFE0E", "play or pause (space)", toggle);
button(get("steps"), "frame-forth", "›", "one frame on (→)", () => stepFrame(1));
button(get("steps"), "forth", "»", "next " + bandName + " (Shift+→)", () => stepBand(1));
const speed = element("select");
speed.id = "speed";
speed.title = "speed (+ and −)";
speed.setAttribute("aria-label", "speed");
for (const factor of SPEEDS) { const option = element("option", factor + "×"); option.value = factor; speed.append(option); }
speed.onchange = () => { clock.speed = Number(speed.value); speed.blur(); };
get("pace").append(speed);
const loopButton = button(get("pace"), "loop", "⟳", "begin again at the end (L)", () => { clock.loop = !clock.loop; changed(false); });
const stepsButton = data.stances
  ? button(get("pace"), "by-stance", "▤", "jump from stance to stance", () => { clock.steps = !clock.steps; changed(false); }) : null;

for (const band of data.bands) {
  const div = element("div");
  div.style.left = 100 * band.begin / data.duration + "%";
  div.style.width = 100 * (band.end - band.begin) / data.duration + "%";
  div.style.background = band.colour;
  get("bands").append(div);
}
if (!data.bands.length || !(data.duration > 0)) get("dock").style.display = "none";
track.setAttribute("aria-valuemax", data.duration);
function timeUnder(event) {
  const area = track.getBoundingClientRect();
  return clamp((event.clientX - area.left) / area.width, 0, 1) * data.duration;
}
function shown(t) { return data.stances && clock.steps ? Math.round(t) : t; }
track.onpointerdown = event => { track.setPointerCapture(event.pointerId); pause(); seek(shown(timeUnder(event))); };
track.onpointermove = event => {
  const t = timeUnder(event);
  if (event.buttons) seek(shown(t));
  const band = data.bands[bandIndex(t)];
  const span = data.stances ? "" : band.begin.toFixed(2) + " to " + band.end.toFixed(2) + " s (" + (band.end - band.begin).toFixed(2) + " s)";
  tip.replaceChildren(element("b", band.name), span);
  tip.style.display = "block";
  const area = track.getBoundingClientRect(), wide = tip.offsetWidth;
  tip.style.left = clamp(event.clientX - wide / 2, 6, innerWidth - wide - 6) + "px";
  tip.style.top = area.top - tip.offsetHeight - 8 + "px";
};
track.onpointerleave = () => { tip.style.display = "none"; };

const strips = (data.readings ? data.readings.charts : []).map(chart => makeChart(get("strips"), chart, data.readings.t, {
  height: 46, bands: data.bands, end: data.duration, seek: t => { pause(); seek(t); }, step: data.stances,
}));
whenTimeChanges(t => {
  const at = Math.min(t, data.duration), band = data.bands[bandIndex(at)], elsewhere = inTree();
  get("cursor").style.display = elsewhere ? "none" : "";
  get("cursor").style.left = 100 * at / (data.duration || 1) + "%";
  track.setAttribute("aria-valuenow", at.toFixed(3));
  get("time").textContent = elsewhere ? "a node" : data.stances ? "stance " + Math.round(at) + " / " + data.duration
    : at.toFixed(2) + " / " + data.duration.toFixed(2) + " s";
  get("phase").textContent = elsewhere ? "in the search tree" : band ? band.name : "";
  playButton.textContent = clock.playing ? "❚❚" : "▶\uFE0E";
  speed.value = clock.speed;
  press(loopButton, clock.loop);
  if (stepsButton) press(stepsButton, clock.steps);
  if (get("strips").style.display === "block") for (const strip of strips) strip.draw(elsewhere ? null : at);
});
function align() {  // charts begin and end where the time line does
  // where the line has a row to itself, it makes room for their axis
  const box = get("strips"), dock = get("dock").getBoundingClientRect(), shown = box.style.display === "block";
  for (const side of ["marginLeft", "marginRight", "flexBasis"]) track.style[side] = "";
  let line = track.getBoundingClientRect();
  const fits = line.left - dock.left > CHART_LEFT + 10;
  if (!fits && shown) {
    Object.assign(track.style, {marginLeft: CHART_LEFT + "px", marginRight: CHART_RIGHT + "px", flexBasis: `calc(100% - ${CHART_LEFT + CHART_RIGHT}px)`});
    line = track.getBoundingClientRect();
  }
  box.style.marginLeft = fits ? line.left - dock.left - CHART_LEFT - 10 + "px" : "0";
  box.style.marginRight = fits ? dock.right - line.right - CHART_RIGHT - 10 + "px" : "0";
  for (const strip of strips) strip.draw(Math.min(clock.t, data.duration));
}
