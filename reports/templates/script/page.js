// The list, the filters, and how they hang together.
let list = null;
let shown = ROWS;

function drawList() {
  const head = (name, style) => element('th', { scope: 'col', class: style }, name);
  const table = element('table', { class: 'rows' },
    element('caption', { class: 'hidden' }, 'Every boundary and provider plan that was tried'),
    element('thead', {}, element('tr', {}, head('Verdict', 'c-verdict'), head('Boundary', 'c-boundary'), head('Provider plan', 'c-plan'),
      head('Attempts', 'c-number'), head('Effects', 'c-number'), head('Acknowledged', 'c-number'), head('Time', 'c-time'))),
    element('tbody'));
  list = new Rows(byId('list'), table, drawRow);
  byId('list').replaceChildren(table);
  const to = (step) => (from) => list.show(Number(from.closest('tr').dataset.index) + step)?.querySelector('button');
  roving(byId('list'), '.open', { ArrowDown: to(1), ArrowUp: to(-1), PageDown: to(10), PageUp: to(-10) });
}

function drawRow(row) {
  const current = Boolean(state.trial && state.trial.row === row);
  return element('tr', { class: current ? 'current' : null },
    element('td', { class: `c-verdict ${VERDICTS[row.verdict].style}` }, mark(row.verdict), element('span', { class: 'verdict-text' }, ` ${share(row.trials, row.verdict)}`)),
    element('th', { scope: 'row', class: 'c-boundary' }, element('button', {
      type: 'button', class: 'open', 'aria-current': current ? 'true' : null, title: row.name,
      onclick: () => choose(row.first, true),
    }, row.boundary)),
    element('td', { class: 'c-plan' }, row.plan, row.scenario ? element('span', { class: 'quiet' }, ` ${row.scenario}`) : null),
    element('td', { class: 'c-number' }, spread(row, 0)), element('td', { class: 'c-number' }, spread(row, 1)),
    element('td', { class: 'c-number' }, spread(row, 2)),
    element('td', { class: 'c-time' }, duration(row.trials.reduce((sum, trial) => sum + trial.ms, 0))));
}

// Shows a trial; with `follow`, goes there.
function choose(trial, follow) {
  const before = state.trial;
  state.trial = trial;
  for (const one of [before, trial]) {
    if (one) list.redraw(shown.indexOf(one.row));
  }
  drawTrial();
  markMap();
  writeAddress();
  if (follow) {
    byId('trial').focus({ preventScroll: true });
    byId('trial').scrollIntoView({ block: 'nearest' });
    if (byId('trial').getBoundingClientRect().top < 0) byId('trial').scrollIntoView({ block: 'start' });
  }
}

function apply() {
  shown = ROWS.filter(isWanted());
  if (!state.trial || !shown.includes(state.trial.row)) state.trial = worst(shown);
  list.set(shown);
  fillMap(shown);
  drawTrial();
  markMap();
  for (const chip of byId('verdicts').children) {
    chip.setAttribute('aria-pressed', state.verdicts.has(chip.dataset.verdict) ? 'true' : 'false');
  }
  byId('count').textContent = isFiltered() ? `${shown.length} of ${counted(ROWS.length, 'row')}` : counted(ROWS.length, 'row');
  byId('clear').disabled = !isFiltered();
  byId('list-printed').textContent = shown.length > WHOLE_MAX ? `… ${shown.length - WHOLE_MAX} more in the file` : '';
}

// The trial that the verdict names, else the first one of the worst verdict.
function worst(rows) {
  const named = byId('jump')?.dataset.trial;
  let found = null;
  for (const row of rows) {
    const trial = named && row.trials.find((one) => one.folder === named);
    if (trial) return trial;
    if (!found || row.verdict < found.verdict) found = row;
  }
  return found && found.first;
}

function drawFilters() {
  const counts = VERDICTS.map((_, code) => ROWS.reduce((sum, row) => sum + row.trials.filter((trial) => trial.verdict === code).length, 0));
  byId('verdicts').replaceChildren(...VERDICTS.flatMap((verdict, code) => (counts[code] ? [element('button', {
    type: 'button', class: 'chip', 'data-verdict': verdict.word, 'aria-pressed': 'false',
    onclick: () => {
      if (!state.verdicts.delete(verdict.word)) state.verdicts.add(verdict.word);
      changed();
    },
  }, mark(code), ` ${verdict.word} `, element('span', { class: 'quiet' }, `${counts[code]}`))] : [])));
  byId('boundaries').replaceChildren(...BOUNDARIES.slice(0, 300).map((boundary) => element('option', { value: boundary })));
  byId('plan').append(...PLANS.slice(0, 300).map((plan) => element('option', { value: plan }, plan)));
  for (const name of ['boundary', 'plan', 'text']) {
    byId(name).addEventListener('input', () => { state[name] = byId(name).value; changed(); });
  }
  byId('filters').addEventListener('submit', (event) => event.preventDefault());
  byId('clear').addEventListener('click', () => { clearFilters(); byId('text').focus(); });
}

function clearFilters() {
  state.verdicts.clear();
  state.boundary = state.plan = state.text = '';
  fillInputs();
  changed();
}

function changed() {
  apply();
  writeAddress();
}

function fillInputs() {
  for (const name of ['boundary', 'plan', 'text']) byId(name).value = state[name];
}

function jump() {
  const first = worst(ROWS);
  if (isFiltered() && !isWanted()(first.row)) clearFilters();
  choose(first, true);
  const evidence = byId('trial').querySelector('.marker.evidence');
  if (evidence) showEvent(evidence.dataset.event);
}

function drawTheme() {
  const themes = ['automatic', 'light', 'dark'];
  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem('killpoint-theme'); } catch { return null; } };
  const store = (theme) => { try { localStorage.setItem('killpoint-theme', theme); } catch { /* it is only remembered where it can be */ } };
  const set = (theme) => {
    root.dataset.theme = theme;
    byId('theme').textContent = `Theme: ${theme}`;
  };
  set(themes.includes(stored()) ? stored() : 'automatic');
  byId('theme').addEventListener('click', () => {
    const next = themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length];
    set(next);
    store(next);
  });
}

document.documentElement.classList.add('script');
drawTheme();
drawFilters();
drawMap();
drawList();
readAddress();
fillInputs();
apply();
byId('jump')?.addEventListener('click', jump);
addEventListener('hashchange', () => {
  // A link to a place in the page is no filter.
  if (location.hash && !location.hash.includes('=')) return;
  readAddress();
  fillInputs();
  apply();
});
addEventListener('beforeprint', () => { list.print(true); map.print(true); for (const one of document.querySelectorAll('details')) one.open = true; });
addEventListener('afterprint', () => { list.print(false); map.print(false); });
document.documentElement.dataset.ready = 'true';
