// Pictures of the scene without the page around it, for PNG, GIF and video.
function beginPictures(layersOn) {
  pause();
  document.body.classList.add("still");
  for (const key of layersOn) setLayer(key, true);
  viewer.set_3d_pane_size();
  makeRoom();
  lookFrom("home");
}
const sheet = element("canvas");
function draw(t, caption) {
  place(t);
  light();
  follow();
  fade();
  viewer.render();
  const image = viewer.renderer.domElement;
  if (sheet.width !== image.width || sheet.height !== image.height) { sheet.width = image.width; sheet.height = image.height; }
  const pen = sheet.getContext("2d"), size = Math.round(image.height / 26);
  pen.drawImage(image, 0, 0);
  pen.font = size + "px system-ui, sans-serif";
  pen.textBaseline = "bottom";
  pen.fillStyle = "#1d2533";
  pen.fillText(caption, size * 0.7, image.height - size * 0.55);
}
function picture(t, caption) { draw(t, caption); return sheet.toDataURL("image/png"); }

// -- video -----------------------------------------------------------------------------------------------------------
const video = {encoder: null, chunks: [], description: null, failed: null};
function inText(buffer) {
  let text = "";
  for (let i = 0; i < buffer.length; i += 32768) text += String.fromCharCode(...buffer.subarray(i, i + 32768));
  return btoa(text);
}
async function canEncode(settings) {
  return typeof VideoEncoder === "function" && (await VideoEncoder.isConfigSupported(settings)).supported;
}
function beginVideo(settings) {
  video.encoder = new VideoEncoder({
    output: (chunk, more) => {
      const bytes = new Uint8Array(chunk.byteLength);
      chunk.copyTo(bytes);
      video.chunks.push([inText(bytes), chunk.type === "key"]);
      if (more && more.decoderConfig && more.decoderConfig.description) video.description = inText(new Uint8Array(more.decoderConfig.description));
    },
    error: error => { video.failed = error; },
  });
  video.encoder.configure({...settings, avc: {format: "avc"}, latencyMode: "quality"});
}
async function addFrame(t, caption, number, rate) {
  if (video.failed) throw video.failed;
  draw(t, caption);
  const frame = new VideoFrame(sheet, {timestamp: Math.round(1e6 * number / rate), duration: Math.round(1e6 / rate)});
  video.encoder.encode(frame, {keyFrame: number % 50 === 0});
  frame.close();
  while (video.encoder.encodeQueueSize > 8) await new Promise(go => setTimeout(go, 5));
}
async function endVideo() {
  await video.encoder.flush();
  if (video.failed) throw video.failed;
  return {chunks: video.chunks, description: video.description};
}
