/* Orders search results: guides and tutorials, then examples and theory, then the API. */
const TIERS = [
  [/^(tutorials|guide)\/(?!index)/, 18],
  [/^(install|choose|conventions|saving|glossary)$/, 16],
  [/^gallery\/.*plot_/, 10],
  [/^(theory\/|results\/|performance)/, 6],
  [/^api/, 0],
  [/^(changelog|architecture|contributing|.*sg_execution_times)/, -10],
];

/* A result: [page, title, anchor, description, score, file name, kind]. */
function score([page, title, anchor, description, found, filename, kind]) {
  const tier = TIERS.find(([pattern]) => pattern.test(page));
  const place = tier ? tier[1] : 8;
  if (kind === "object") {
    /* The name itself, where it is no everyday word (ESNRegressor, load_co2), comes first. */
    const name = title.split(".").pop();
    const exact = found >= Scorer.objNameMatch + Scorer.objPrio[1];
    return exact && /[A-Z_]/.test(name) ? 100 : Math.min(found, 11);
  }
  /* Each object is in the index, too, once more: never above a page that says what it is for. */
  if (kind === "index") return (place > 0 ? 15 : 0) + Math.min(found, 100) / 10;
  return found + place;
}

var Scorer = {
  score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
