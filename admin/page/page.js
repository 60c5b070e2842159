// Renews the parts of the page that are marked with data-live, in place. Nothing
// else on the page needs this script.
"use strict";
(() => {
  const place = document.getElementById("live");
  if (!place) return;
  const every = 2500;
  let paused = false, timer = 0, since = null;

  const said = document.createElement("span");
  said.setAttribute("role", "status");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  place.append(said, button);

  const show = () => {
    const text = paused ? "Not renewed." : since ? "No answer since " + since.toLocaleTimeString() + ": what you see is from then." : "Renewed every few seconds.";
    if (said.textContent !== text) said.textContent = text;
    button.textContent = paused ? "Go on" : "Pause";
  };

  // What somebody reads or works with right now stays as it is.
  const inUse = part => {
    const chosen = document.getSelection();
    return part.contains(document.activeElement) && document.activeElement.matches("a, input, button, summary") ||
      chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode);
  };

  const replace = (part, fresh) => {
    if (part.innerHTML === fresh.innerHTML || inUse(part)) return;
    const offsets = [...part.querySelectorAll(".scroll")].map(x => x.scrollLeft);
    const known = new Set([...part.querySelectorAll("table.changes tbody tr")].map(x => x.cells[3].textContent));
    part.replaceChildren(...fresh.childNodes);
    part.querySelectorAll(".scroll").forEach((x, i) => { x.scrollLeft = offsets[i] || 0; });
    if (known.size) part.querySelectorAll("table.changes tbody tr").forEach(x => { if (!known.has(x.cells[3].textContent)) x.classList.add("fresh"); });
  };

  const renew = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(10000) });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const other = fresh.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
        if (other && !paused) replace(part, other);
      }
      since = null;
    } catch {
      since = since || new Date();
    }
    show();
  };

  const again = async () => {
    clearTimeout(timer);
    if (!paused && !document.hidden) await renew();
    clearTimeout(timer);
    if (!paused && !document.hidden) timer = setTimeout(again, every);
  };

  button.addEventListener("click", () => { paused = !paused; show(); again(); });
  document.addEventListener("visibilitychange", again);
  show();
  timer = setTimeout(again, every);
})();
