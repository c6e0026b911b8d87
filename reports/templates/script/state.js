// What is filtered and which trial is shown. Kept in the address, so that a link or a reload shows the same.
const state = { verdicts: new Set(), boundary: '', plan: '', text: '', trial: null };
const TRIALS = new Map(ROWS.flatMap((row) => row.trials.map((trial) => [trial.folder, trial])));
const BOUNDARIES = [...new Set(ROWS.map((row) => row.boundary))];
const PLANS = [...new Set(ROWS.map((row) => row.plan))];

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const known = VERDICTS.map((verdict) => verdict.word);
  state.verdicts = new Set((words.get('verdict') || '').split(',').filter((word) => known.includes(word)));
  state.boundary = words.get('boundary') || '';
  state.plan = words.get('plan') || '';
  state.text = words.get('text') || '';
  state.trial = TRIALS.get(words.get('trial')) || null;
}

function writeAddress() {
  const words = new URLSearchParams();
  if (state.verdicts.size) words.set('verdict', [...state.verdicts].join(','));
  if (state.boundary) words.set('boundary', state.boundary);
  if (state.plan) words.set('plan', state.plan);
  if (state.text) words.set('text', state.text);
  if (state.trial) words.set('trial', state.trial.folder);
  const hash = words.toString();
  history.replaceState(null, '', hash ? `#${hash}` : location.pathname + location.search);
}

// All that is said of a row, for the filter on text; made when it is first asked for.
function words(row) {
  if (row.words === undefined) {
    const findings = row.trials.flatMap(({ full }) => (full ? full.judged : []))
      .flatMap(([invariant, , , [found]]) => [text(invariant), ...found.map(([, message, subject]) => `${text(message)} ${text(subject)}`)]);
    const folders = row.trials.map((trial) => trial.folder);
    row.words = [row.boundary, row.plan, row.name, row.scenario, ...folders, ...findings].join('\n').toLowerCase();
  }
  return row.words;
}

function isWanted() {
  const exact = BOUNDARIES.includes(state.boundary);
  const wanted = state.text.toLowerCase();
  return (row) =>
    (!state.verdicts.size || row.trials.some((trial) => state.verdicts.has(VERDICTS[trial.verdict].word))) &&
    (!state.boundary || (exact ? row.boundary === state.boundary : row.boundary.includes(state.boundary))) &&
    (!state.plan || row.plan === state.plan) &&
    (!wanted || words(row).includes(wanted));
}

const isFiltered = () => Boolean(state.verdicts.size || state.boundary || state.plan || state.text);
