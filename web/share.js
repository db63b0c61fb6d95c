"use strict";
// What leaves the page: links, texts, pictures and files.

// What a state has that another one has not; undefined: nothing. In a list 0
// stands for what is the same.
function deltaOf(state, usual) {
  if (Array.isArray(state)) {
    const parts = state.map((each, i) => deltaOf(each, usual?.[i]) ?? 0);
    return parts.every((part) => part === 0) &&
      parts.length === usual?.length ? undefined : parts;
  }
  if (typeof state !== "object" || state === null)
    return JSON.stringify(state) === JSON.stringify(usual) ? undefined : state;
  const parts = Object.entries(state).map(([key, value]) =>
    [key, deltaOf(value, usual?.[key])]).filter(([, part]) =>
    part !== undefined);
  return parts.length ? Object.fromEntries(parts) : undefined;
}

// "storm", or "storm=eyJsb2FkIjo5MH0": what is not as usual, as JSON in
// base64url.
function linkText(tab, delta) {
  if (delta === undefined) return tab;
  const bytes = new TextEncoder().encode(JSON.stringify(delta));
  return `${tab}=${btoa(String.fromCharCode(...bytes)).replaceAll("+", "-")
    .replaceAll("/", "_").replace(/=+$/, "")}`;
}

// {tab, said} of such a text; said is {} where it is nonsense.
function readLink(text) {
  const [, tab, code] = /^(\w*)=?([^]*)$/.exec(text) || [];
  try {
    const bytes = Uint8Array.from(
      atob((code || "").replaceAll("-", "+").replaceAll("_", "/")),
      (c) => c.charCodeAt(0));
    const said = JSON.parse(new TextDecoder().decode(bytes) || "{}");
    return { tab, said: said !== null && typeof said === "object" ? said : {} };
  } catch {
    return { tab, said: {} };
  }
}

function saveFile(blob, name) {
  const url = URL.createObjectURL(blob);
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// Each returns what it did, in words.
async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    return `${what} is copied.`;
  } catch {
    return "This browser did not let the page copy.";
  }
}

// An <svg> that stands alone, as the bytes of a picture, twice as sharp.
async function pngOf(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = element("canvas", {
    width: image.width * 2, height: image.height * 2,
  });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((go) => canvas.toBlob(go, "image/png"));
}

// Copies the picture, or saves it as a file where the browser forbids a copy.
async function copyPng(svg, name) {
  const blob = await pngOf(svg);
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
    return "The picture is copied (PNG).";
  } catch {
    saveFile(blob, name);
    return "The picture is saved (PNG).";
  }
}

if (typeof module === "object") module.exports = { deltaOf, linkText, readLink };
