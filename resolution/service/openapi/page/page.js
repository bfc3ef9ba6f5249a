"use strict";

// The address of this server, wherever it stands.
const base = location.origin + location.pathname.replace(/\/docs(\/[a-z_]*)?\/?$/, "");
if (location.protocol.startsWith("http")) {
  for (const e of document.querySelectorAll(".base")) e.textContent = base;
}

// The key of the reader goes into the examples. It stays in this tab.
const yours = document.querySelector(".yours"), keys = [...document.querySelectorAll(".key")];
const useKey = (key) => {
  for (const e of keys) e.textContent = /^[\w.-]+$/.test(key) ? key : "<API_KEY>";
  sessionStorage.setItem("key", key);
};
if (keys.length > 0) {
  const input = yours.querySelector("input");
  yours.hidden = false;
  input.value = sessionStorage.getItem("key") || "";
  input.addEventListener("input", () => useKey(input.value.trim()));
  useKey(input.value);
}

// Examples are in the language that the reader chose.
const useLanguage = (name) => {
  document.documentElement.dataset.language = name;
  for (const b of document.querySelectorAll(".languages button")) b.setAttribute("aria-pressed", String(b.value === name));
  sessionStorage.setItem("language", name);
};
for (const p of document.querySelectorAll(".languages")) {
  p.hidden = false;
  p.addEventListener("click", (e) => { if (e.target.value) useLanguage(e.target.value); });
}
useLanguage(sessionStorage.getItem("language") || "curl");

// Search keeps the contents that have all words. Enter goes to the first.
for (const find of document.querySelectorAll(".find")) {
  const nav = find.parentElement, input = find.querySelector("input");
  find.hidden = false;
  input.addEventListener("input", () => {
    const asked = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const li of nav.querySelectorAll("li")) {
      const words = (li.textContent + " " + li.dataset.words).toLowerCase();
      li.hidden = !asked.every((w) => words.includes(w));
    }
    for (const group of nav.querySelectorAll("div")) group.hidden = !group.querySelector("li:not([hidden])");
    nav.querySelector(".nothing").hidden = Boolean(nav.querySelector("li:not([hidden])"));
  });
  input.addEventListener("keydown", (e) => {
    if (e.key === "Enter") nav.querySelector("li:not([hidden]) a")?.click();
  });
}

// A button on every block of code that copies it.
if (navigator.clipboard) {
  for (const pre of document.querySelectorAll("pre")) {
    const block = document.createElement("div");
    block.className = "block";
    pre.replaceWith(block);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(pre, button);
  }
}

// The contents show where the reader is.
const links = new Map();
for (const a of document.querySelectorAll(".side li a")) {
  if (a.pathname === location.pathname && document.getElementById(a.hash.slice(1))) links.set(a.hash.slice(1), a);
}
const seen = new Set();
const observer = new IntersectionObserver((entries) => {
  for (const e of entries) e.isIntersecting ? seen.add(e.target) : seen.delete(e.target);
  const first = [...links.keys()].find((id) => seen.has(document.getElementById(id)));
  if (!first) return;
  for (const [id, a] of links) id === first ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current");
}, { rootMargin: "0px 0px -70% 0px" });
for (const id of links.keys()) observer.observe(document.getElementById(id));

// Paper shows everything.
addEventListener("beforeprint", () => {
  for (const d of document.querySelectorAll("main details:not(.menu)")) d.open = true;
});
