// What the theme leaves open for who has no mouse: boxes that scroll can be reached, and scrolled,
// by the keyboard.
(function () {
  const BOXES = ".table-wrapper, .highlight pre, article p:has(mjx-container), #examples-using-this .sphx-glr-thumbnails";

  function mark() {
    for (const box of document.querySelectorAll(BOXES)) {
      const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
      if (scrolls && !box.hasAttribute("tabindex")) {
        box.tabIndex = 0;
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", box.matches(".table-wrapper") ? "table" : box.matches("pre") ? "code" : "scrolls sideways");
        box.dataset.scrolls = "";
      } else if (!scrolls && "scrolls" in box.dataset) {
        for (const name of ["tabindex", "role", "aria-label", "data-scrolls"]) box.removeAttribute(name);
      }
    }
  }

  // headings of the sidebar say their level
  for (const heading of document.querySelectorAll('[role="heading"]:not([aria-level])')) {
    heading.setAttribute("aria-level", "2");
  }
  window.addEventListener("load", mark);
  window.addEventListener("resize", mark);
})();
