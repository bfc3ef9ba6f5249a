"use strict";

// The address of this server, wherever it stands.
const base = location.origin + location.pathname.replace(/\/docs\/?$/, "");
if (location.protocol.startsWith("http")) {
  for (const e of document.querySelectorAll(".base")) e.textContent = base;
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
for (const a of document.querySelectorAll(".side li a")) links.set(a.hash.slice(1), a);
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
