// The data, in the order in which reports/src/html/data.rs writes it, and making elements. Texts of a worker only
// ever become text nodes or attributes that nothing obeys.
const DATA = JSON.parse(document.getElementById('data').textContent);
const VERDICTS = [
  { word: 'violated', mark: '✗', style: 'violated' },
  { word: 'inconclusive', mark: '?', style: 'inconclusive' },
  { word: 'vacuous', mark: '○', style: 'vacuous' },
  { word: 'not judged', mark: '–', style: 'unjudged' },
  { word: 'holds', mark: '✓', style: 'holds' },
];
const text = (place) => (place < 0 ? '' : DATA.texts[place]);
const wording = (place, boundary, folder) =>
  DATA.wordings[place].map((piece) => (piece === 0 ? boundary : piece === 1 ? folder : piece)).join('');

const ROWS = DATA.rows.map(([boundary, plan, name, scenario, verdict, trials], index) => {
  const row = {
    index,
    boundary: text(boundary),
    plan: text(plan),
    name: wording(name, text(boundary), ''),
    scenario: text(scenario),
    verdict,
  };
  row.trials = trials.map(([repetition, own, folder, counters, ms, replay, full]) => ({
    row,
    repetition,
    verdict: own,
    folder: text(folder),
    counters,
    ms,
    replay: () => wording(replay, row.boundary, text(folder)),
    full: full < 0 ? null : DATA.full[full],
  }));
  // The trial that stands for the row: the first of the worst.
  row.first = row.trials.find((trial) => trial.verdict === verdict) || row.trials[0];
  return row;
});

const byId = (id) => document.getElementById(id);

// element('p', { class: 'x', onclick }, 'text', child, …); what is null is left out.
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ''));
  return made;
}

function shape(tag, attributes) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const counted = (number, noun) => `${number} ${noun}${number === 1 ? '' : 's'}`;

function duration(ms) {
  if (ms < 1000) return `${Math.floor(ms)} ms`;
  if (ms < 60000) return `${(Math.floor(ms / 10) / 100).toFixed(2)} s`;
  return `${Math.floor(ms / 60000)} min ${String(Math.floor(ms / 1000) % 60).padStart(2, '0')} s`;
}

function spread(row, which) {
  const numbers = row.trials.filter((trial) => trial.counters).map((trial) => trial.counters[which]);
  if (!numbers.length) return '-';
  const least = Math.min(...numbers), most = Math.max(...numbers);
  return least === most ? `${least}` : `${least}–${most}`;
}

const mark = (verdict) =>
  element('span', { class: `mark ${VERDICTS[verdict].style}`, 'aria-hidden': 'true' }, VERDICTS[verdict].mark);

// How many of some trials came to the worst verdict: `2 of 3 violated`.
function share(trials, verdict) {
  const same = trials.filter((trial) => trial.verdict === verdict).length;
  if (trials.length === 1) return VERDICTS[verdict].word;
  return `${same} of ${trials.length} ${VERDICTS[verdict].word}`;
}

// One tab stop for many buttons; arrows, Home and End go from one to the next.
function roving(container, selector, moves) {
  container.addEventListener('keydown', (event) => {
    const from = event.target.closest(selector);
    const step = moves[event.key];
    if (!from || step === undefined) return;
    const to = step(from);
    if (!to) return;
    event.preventDefault();
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
}

async function copy(source, button) {
  const written = source.textContent;
  const select = () => {
    getSelection().selectAllChildren(source);
    return document.execCommand('copy');
  };
  let done;
  try {
    await navigator.clipboard.writeText(written);
    done = true;
  } catch {
    done = select();
  }
  const label = button.firstChild;
  label.data = done ? 'Copied' : 'Selected';
  setTimeout(() => (label.data = 'Copy'), 1600);
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy]');
  if (button) copy(byId(button.dataset.copy), button);
});
