// The legend: what the colours mean, with a switch for each layer; and the buttons above the scene.
const layers = {};
function layer(key, name, colour, on, apply, hint) { layers[key] = {key, name, colour, on, apply, hint}; }
function showNodes(paths) { return on => { for (const path of paths) nodeAt(path).visible = on; }; }
for (const item of data.layers) layer(item.key, item.name, item.colour, item.on, showNodes(item.nodes), item.hint);
if (data.forces.length) layer("values", "force values", null, false, on => { labels.on = on; drawLabels(); }, "V");
if (data.ghost) layer("ghost", data.stances ? "next posture" : "next stance's posture", "#5b8fd6", false, on => { ghost.show(on); }, "G");
layer("grid", "grid of 0.5 m", null, true, on => { grid.visible = on; });
layer("shadow", "shadow", null, true, on => { sun.castShadow = on; });
layer("fade", "see through near walls", null, true, on => { fading = on; fade(); });

function setLayer(key, on) {
  const item = layers[key];
  if (!item) return;
  item.on = on;
  item.apply(on);
  if (item.box) item.box.checked = on;
  viewer.set_dirty();
}
function toggleLayer(key) { if (layers[key]) setLayer(key, !layers[key].on); }
function buildLegend() {
  const box = get("legend");
  box.append(element("h3", "shown"));
  for (const item of Object.values(layers)) {
    const label = element("label"), input = element("input"), swatch = element("i");
    input.type = "checkbox";
    input.checked = item.on;
    input.dataset.layer = item.key;
    input.onchange = () => { setLayer(item.key, input.checked); input.blur(); };
    item.box = input;
    if (item.colour) swatch.style.background = item.colour;
    label.append(input, swatch, element("span", item.name));
    if (item.hint) label.title = "key " + item.hint;
    box.append(label);
  }
  if (data.keys.length) box.append(element("h3", "colours"));
  const kinds = new Map(data.bands.map(band => [band.name.split(" ")[0], band.colour]));
  const lists = [data.keys, kinds.size ? [null, ...kinds] : []];
  for (const entry of lists.flat()) {
    if (entry === null) { box.append(element("h3", data.stances ? "what changes" : "phases")); continue; }
    const line = element("div", undefined, "key"), swatch = element("i");
    swatch.style.background = entry[1];
    line.append(swatch, element("span", entry[0]));
    box.append(line);
  }
}
function panel(id, text, title, host) {  // a button that shows and hides a panel
  const made = button(get("tools"), id + "-button", text, title, () => setPanel(id, !panels[id].on));
  panels[id] = {on: false, made, host};
}
const panels = {};
function setPanel(id, on) {
  const item = panels[id];
  if (!item) return;
  item.on = on;
  item.host.style.display = on ? "block" : "none";
  press(item.made, on);
  align();
  makeRoom();
  changed(false);
}
const views = element("select");
views.id = "views";
views.title = "look from (keys 0 to 5)";
views.setAttribute("aria-label", "look from");
for (const name of ["home", ...Object.keys(VIEWS)]) views.append(element("option", name));
views.onchange = () => { lookFrom(views.value); views.blur(); };
get("tools").append(views);
const followButton = button(get("tools"), "follow", "follow", "the camera goes along (F)", () => { following = !following; press(followButton, following); });
press(followButton, false);
button(get("tools"), "reset", "reset", "camera, speed and time as at the beginning (R)", reset);
if (data.bands.length || data.certificate || data.tree) panel("facts", "card", "loads, margins and certificate (C)", get("facts"));
if (strips.length) panel("strips", "charts", "charts below the time line (S)", get("strips"));
panel("legend", "legend", "what the colours mean, with switches (K)", get("legend"));
panel("help", "?", "keys (?)", get("help"));
panel("controls", "⚙\uFE0E", "meshcat's own controls", viewer.gui.domElement);
function reset() {
  following = false;
  press(followButton, false);
  views.value = "home";
  clock.speed = 1;
  clock.loop = true;
  seek(0);
  lookFrom("home");
}
