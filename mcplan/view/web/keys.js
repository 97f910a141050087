// Keys, and their list.
const KEYS = [
  ["space", "play or pause", toggle, " "], ["←  →", "one frame back, on"], ["Shift+←  →", "one " + bandName + " back, on"],
  ["Home  End", "to the beginning, to the end"], ["+  −", "faster, slower", () => setSpeed(1), "+"],
  ["L", "begin again at the end, or stop there", () => loopButton.click(), "l"],
  ["0 … 5", "look from home, front, left, back, right, top"], ["F", "the camera goes along", () => followButton.click(), "f"],
  ["R", "reset camera, speed and time", reset, "r"], ["C", "card", () => panels.facts && setPanel("facts", !panels.facts.on), "c"],
  ["S", "charts", () => panels.strips && setPanel("strips", !panels.strips.on), "s"],
  ["K", "legend", () => setPanel("legend", !panels.legend.on), "k"], ["V", "force values", () => toggleLayer("values"), "v"],
  ["G", "posture of the next stance", () => toggleLayer("ghost"), "g"], ["?", "these keys", () => setPanel("help", !panels.help.on), "?"],
];
(function list() {
  const table = element("table");
  for (const [key, what] of data.tree ? [...KEYS, ["↑  ↓", "through the search tree"]] : KEYS) {
    const row = element("tr"), cell = element("td");
    cell.append(element("kbd", key));
    row.append(cell, element("td", what));
    table.append(row);
  }
  get("help").append(element("h2", "keys"), table);
})();
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|INPUT)$/.test(event.target.tagName)) return;
  const moves = {ArrowRight: 1, ArrowLeft: -1}, names = ["home", ...Object.keys(VIEWS)];
  const bound = KEYS.find(entry => entry[3] === event.key.toLowerCase());
  if (event.key in moves) (event.shiftKey ? stepBand : stepFrame)(moves[event.key]);
  else if (event.key === "Home") { pause(); seek(0); }
  else if (event.key === "End") { pause(); seek(data.duration); }
  else if (event.key === "-" || event.key === "−") setSpeed(-1);
  else if (event.key === "Escape") setPanel("help", false);
  else if (/^[0-5]$/.test(event.key)) { views.value = names[event.key]; lookFrom(names[event.key]); }
  else if (bound) bound[2]();
  else return;
  event.preventDefault();
});
// a page that holds this one, as a report does, may ask for a time
addEventListener("message", event => {
  const t = event.data && event.data.seek;
  if (event.source === parent && typeof t === "number" && Number.isFinite(t)) { pause(); seek(t); }
});
