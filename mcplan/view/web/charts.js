// Charts over time, one canvas each. A chart: {name, unit, low, limit, curves: [{name, colour, values, whose}]}.
// Values that are null are gaps. All charts of a page share their times, and a cursor.
const CHART_LEFT = 46, CHART_RIGHT = 2;
function indexAt(times, t) {
  let low = 0, high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < t) low = middle + 1; else high = middle;
  }
  return low > 0 && t - times[low - 1] < times[low] - t ? low - 1 : low;
}
function niceStep(range, parts) {
  const raw = range / parts, power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find(step => step * power >= raw * 0.999);
}
// A colour on the page's cards: on dark cards lighter, of the same hue, for contrast.
const DARK = matchMedia("(prefers-color-scheme: dark)");
function onCard(colour) {
  if (!DARK.matches) return colour;
  const rgb = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
  const light = rgb => rgb.map(c => ((c / 255 + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  for (let k = 0; k < 8 && light(rgb) < 0.22; k++) rgb.forEach((c, i) => { rgb[i] = c + 0.15 * (255 - c); });
  return "rgb(" + rgb.map(Math.round).join(", ") + ")";
}
function makeChart(host, chart, times, options) {
  const {height, bands = [], end, seek, axis = false, step = false} = options;
  const box = element("div", undefined, "chart"), keys = element("div", undefined, "keys"), canvas = element("canvas");
  box.append(keys, canvas);
  host.append(box);
  keys.append(element("b", chart.name + " [" + chart.unit + "]"));
  const swatches = [], outputs = chart.curves.map(curve => {
    const item = element("span"), swatch = element("i"), value = element("span");
    swatches.push(swatch);
    item.append(swatch, curve.name + " ", value);
    keys.append(item);
    return value;
  });
  const all = chart.curves.flatMap(curve => curve.values).filter(v => v !== null);
  let low = Math.min(chart.low ?? Infinity, chart.limit ?? Infinity, ...[all.reduce((a, b) => Math.min(a, b), Infinity)]);
  let high = Math.max(chart.limit ?? -Infinity, all.reduce((a, b) => Math.max(a, b), -Infinity));
  if (!Number.isFinite(low) || !Number.isFinite(high)) { low = 0; high = 1; }
  if (high - low < 1e-9) high = low + 1;
  high += 0.06 * (high - low);
  if (chart.low !== low) low -= 0.06 * (high - low);
  const left = CHART_LEFT, right = axis ? 10 : CHART_RIGHT, foot = axis ? 30 : 3;
  let now = null;

  function inkOf(curve) { return curve.colour === "total" ? colourOfTheme("--ink") : onCard(curve.colour); }
  function size() {
    const ratio = devicePixelRatio || 1, width = canvas.clientWidth || 300;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    canvas.style.height = height + "px";
    return [ratio, width];
  }
  function draw(t) {
    now = t;
    chart.curves.forEach((curve, i) => { swatches[i].style.background = inkOf(curve); });
    const [ratio, width] = size(), context = canvas.getContext("2d");
    const x = s => left + (width - left - right) * s / end, y = v => 4 + (height - foot - 4) * (high - v) / (high - low);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    for (const band of bands) {
      context.globalAlpha = 0.16;
      context.fillStyle = band.colour;
      context.fillRect(x(band.begin), 4, x(band.end) - x(band.begin), height - foot - 4);
      context.globalAlpha = 1;
      if (axis) context.fillRect(x(band.begin), height - foot, x(band.end) - x(band.begin), 4);
    }
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colourOfTheme("--muted");
    context.strokeStyle = colourOfTheme("--grid");
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const gap = niceStep(high - low, axis ? 5 : 2);
    for (let v = Math.ceil(low / gap) * gap; v <= high; v += gap) {
      line(context, left, y(v), width - right, y(v));
      context.fillText(String(Number(v.toPrecision(6))), left - 6, clamp(y(v), 7, height - foot - 4));
    }
    if (axis) {
      context.textAlign = "center";
      context.textBaseline = "top";
      const second = niceStep(end, Math.max(3, width / 110));
      for (let s = 0; s <= end + 1e-9; s += second) {
        context.fillText(Number(s.toPrecision(6)) + (step ? "" : " s"), clamp(x(s), left + 8, width - right - 14), height - foot + 9);
      }
    }
    if (chart.limit !== undefined) {
      context.strokeStyle = colourOfTheme("--bad");
      context.setLineDash([5, 4]);
      line(context, left, y(chart.limit), width - right, y(chart.limit));
      context.setLineDash([]);
    }
    context.lineJoin = "round";
    for (const curve of chart.curves) {
      context.strokeStyle = inkOf(curve);
      context.lineWidth = curve.colour === "total" ? 1 : 1.5;
      context.beginPath();
      let open = false;
      curve.values.forEach((value, i) => {
        if (value === null) { open = false; return; }
        if (open) context.lineTo(x(times[i]), y(value)); else context.moveTo(x(times[i]), y(value));
        open = true;
      });
      context.stroke();
    }
    for (const value of outputs) value.textContent = "";
    if (t !== null) {
      context.strokeStyle = colourOfTheme("--ink");
      context.lineWidth = 1;
      line(context, x(t), 0, x(t), height - foot);
      const k = indexAt(times, t);
      chart.curves.forEach((curve, i) => {
        const value = curve.values[k];
        outputs[i].textContent = value === null || value === undefined ? "–" : String(Number(value.toPrecision(3)))
          + (curve.whose && curve.whose[k] ? " (" + curve.whose[k] + ")" : "");
      });
    }
  }
  function line(context, x0, y0, x1, y1) {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }
  function timeAt(event) {
    const area = canvas.getBoundingClientRect();
    return clamp((event.clientX - area.left - left) / (area.width - left - right), 0, 1) * end;
  }
  canvas.onpointerdown = event => { canvas.setPointerCapture(event.pointerId); if (seek) seek(timeAt(event)); };
  canvas.onpointermove = event => {
    if (event.buttons && seek) seek(timeAt(event)); else if (options.hover) options.hover(timeAt(event));
  };
  addEventListener("resize", () => draw(now));
  DARK.addEventListener("change", () => draw(now));
  draw(null);
  return {draw, box};
}
