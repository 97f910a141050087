// Small helpers that every page uses. Text from files goes into `textContent` only, never into markup.
function get(id) { return document.getElementById(id); }
function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (name) made.className = name;
  return made;
}
function clamp(value, low, high) { return Math.min(Math.max(value, low), high); }
function colourOfTheme(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
function listOf(rows) {
  const table = element("table");
  for (const [label, value, name] of rows) {
    const row = element("tr", undefined, name);
    row.append(element("td", label), element("td", value));
    table.append(row);
  }
  return table;
}
