// The card: contact forces and used limits at this time, the plan, and the certificate.
let shownFacts = null;
const card = {head: element("div"), more: element("div")};
get("facts").append(card.head, card.more);
function showFacts(facts) {
  if (facts === shownFacts) return;
  shownFacts = facts;
  card.head.replaceChildren(element("h2", facts.title));
  for (const line of facts.lines || []) card.head.append(element("p", line, "bad"));
  for (const rows of [facts.contacts || [], facts.values || []]) if (rows.length) card.head.append(listOf(rows));
}
function readingAt(t) {
  const readings = data.readings, k = indexAt(readings.t, t), band = data.bands[bandIndex(t)], [, limits, region] = readings.charts;
  const contacts = readings.patches.filter(patch => patch.values[k] > 1).map(patch => [
    patch.name, patch.values[k].toFixed(0) + " N" + (patch.used[k] === null ? "" : ", " + (100 * patch.used[k]).toFixed(0) + " % of " + patch.of[k]),
  ]);
  const values = [];
  for (const curve of limits.curves) {
    if (curve.values.length && curve.values[k] !== null) {
      values.push([curve.name + " used" + (curve.whose && curve.whose[k] ? " (" + curve.whose[k] + ")" : ""), curve.values[k].toFixed(0) + " %"]);
    }
  }
  const depth = region.curves[0].values[k];
  values.push(["centre of mass to edge", depth === null ? "–" : depth.toFixed(1) + " cm"]);
  shownFacts = null;
  showFacts({title: band.name + ", " + (band.end - t).toFixed(1) + " s left", contacts: contacts.length ? contacts : [["no contact carries load", ""]], values});
}
function buildCertificate() {
  const certificate = data.certificate, verdict = get("verdict");
  if (!certificate) {
    if (data.readings) verdict.textContent = "not verified";
    return;
  }
  verdict.textContent = certificate.success ? "certificate holds" : certificate.broken + " of " + certificate.judged + " checks broken";
  verdict.className = certificate.success ? "good" : "bad";
  const box = element("details"), head = element("summary", "certificate: " + certificate.judged + " checks, " + certificate.broken + " broken");
  head.className = certificate.success ? "good" : "bad";
  box.open = !certificate.success;
  box.append(head);
  for (const [kind, name, value, bound, where] of certificate.rows) {
    const line = element("div", undefined, "check"), mark = kind === "pass" ? "✓ " : kind === "FAIL" ? "✕ " : "– ";
    line.append(element("b", mark, kind === "pass" ? "good" : kind === "FAIL" ? "bad" : ""), name);
    line.append(element("span", [value, bound && "allowed " + bound, where].filter(text => text).join(", ")));
    box.append(line);
  }
  card.more.append(box);
}
function buildPlan() {
  if (!data.plan.length) return;
  const box = element("details"), list = element("div", undefined, "stances");
  box.append(element("summary", "plan: " + data.plan.length + " stances"), list);
  for (const stance of data.plan) {
    const line = element("div");
    line.append(element("span", stance.name), element("span", stance.margin));
    line.title = "go there";
    line.onclick = () => { if (stance.t !== null) { pause(); seek(stance.t); } };
    list.append(line);
  }
  card.more.append(box);
  whenTimeChanges(t => {
    const at = data.plan.findLastIndex(stance => stance.t !== null && stance.t <= t + 1e-6);
    [...list.children].forEach((line, i) => line.classList.toggle("chosen", i === at && !inTree()));
  });
}
buildPlan();
buildCertificate();
whenTimeChanges((t, jumped) => {
  if (inTree()) return;
  const band = data.bands[bandIndex(t)];
  if (band && band.facts) showFacts(band.facts);
  else if (band && data.readings && (jumped || Math.abs(t - (card.at ?? -1)) > 0.03)) { card.at = t; readingAt(t); }
});
