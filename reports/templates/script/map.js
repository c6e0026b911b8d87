// The map: boundaries down, in the order in which the worker came to them; provider plans across.
const COLUMNS_MAX = 60;
let map = null;

function cellsOf(rows) {
  const lines = new Map();
  for (const row of rows) {
    if (!lines.has(row.boundary)) lines.set(row.boundary, new Map());
    const cells = lines.get(row.boundary);
    if (!cells.has(row.plan)) cells.set(row.plan, []);
    cells.get(row.plan).push(row);
  }
  return [...lines].map(([boundary, cells]) => ({ boundary, cells }));
}

function cellButton(boundary, plan, rows) {
  const trials = rows.flatMap((row) => row.trials);
  const verdict = Math.min(...rows.map((row) => row.verdict));
  const said = `${boundary} × ${plan}: ${share(trials, verdict)}`;
  const first = rows.find((row) => row.verdict === verdict);
  const mixed = trials.some((trial) => trial.verdict !== verdict);
  const tell = () => { byId('map-readout').textContent = said; };
  return element('button', {
    type: 'button',
    class: `cell ${VERDICTS[verdict].style}${mixed ? ' mixed' : ''}`,
    'aria-label': said,
    'aria-current': state.trial && rows.includes(state.trial.row) ? 'true' : null,
    tabindex: -1,
    onclick: () => choose(first.first, true),
    onmouseenter: tell,
    onfocus: tell,
  }, VERDICTS[verdict].mark);
}

function mapTable(plans) {
  const heads = plans.map((plan) => element('th', { scope: 'col' }, element('span', {}, plan)));
  return element('table', { class: 'cells' },
    element('caption', { class: 'hidden' }, 'Verdicts by boundary and provider plan'),
    element('thead', {}, element('tr', {}, element('th', { scope: 'col', class: 'corner' }, 'boundary'), heads)),
    element('tbody'));
}

function drawMap() {
  const plans = PLANS.slice(0, COLUMNS_MAX);
  const table = mapTable(plans);
  const line = ({ boundary, cells }) => element('tr', {},
    element('th', { scope: 'row' }, element('span', { title: boundary }, boundary)),
    plans.map((plan) => element('td', {}, cells.has(plan) ? cellButton(boundary, plan, cells.get(plan)) : null)));
  map = new Rows(byId('map'), table, line);
  byId('map').replaceChildren(table);
  const inLine = (button, step) => {
    const buttons = [...button.closest('tr').querySelectorAll('button')];
    return buttons[buttons.indexOf(button) + step];
  };
  const toLine = (button, step) => {
    const column = button.parentNode.cellIndex;
    let index = Number(button.closest('tr').dataset.index) + step;
    for (; index >= 0 && index < map.items.length; index += step) {
      const buttons = [...map.show(index).querySelectorAll('button')];
      const nearest = buttons.find((one) => one.parentNode.cellIndex >= column) || buttons.at(-1);
      if (nearest) return nearest;
    }
    return null;
  };
  roving(byId('map'), '.cell', {
    ArrowRight: (from) => inLine(from, 1),
    ArrowLeft: (from) => inLine(from, -1),
    ArrowDown: (from) => toLine(from, 1),
    ArrowUp: (from) => toLine(from, -1),
  });
  drawMapLegend();
}

function drawMapLegend() {
  const present = new Set(ROWS.flatMap((row) => row.trials.map((trial) => trial.verdict)));
  const marks = VERDICTS.map((verdict, code) => [code, verdict]).filter(([code]) => present.has(code));
  byId('map-legend').replaceChildren(
    ...marks.map(([code, verdict]) => element('li', {}, mark(code), ` ${verdict.word}`)),
    element('li', {}, element('span', { class: 'mark none', 'aria-hidden': 'true' }, '·'), ' not tried'));
  const more = PLANS.length - COLUMNS_MAX;
  if (more > 0) byId('map-legend').append(element('li', {}, `${counted(more, 'provider plan')} more: see the list`));
}

function fillMap(rows) {
  map.set(cellsOf(rows));
  const current = byId('map').querySelector('.cell[aria-current]') || byId('map').querySelector('.cell');
  if (current) current.tabIndex = 0;
}

// The cell of the trial that is shown is marked.
function markMap() {
  for (const button of byId('map').querySelectorAll('.cell[aria-current]')) {
    button.removeAttribute('aria-current');
    button.tabIndex = -1;
  }
  const index = map.items.findIndex(({ boundary, cells }) =>
    state.trial && boundary === state.trial.row.boundary && cells.has(state.trial.row.plan));
  if (index >= 0) {
    const column = PLANS.indexOf(state.trial.row.plan) + 1;
    const row = map.drawn.get(index);
    const button = row && row.cells[column] && row.cells[column].firstChild;
    if (button) {
      button.setAttribute('aria-current', 'true');
      button.tabIndex = 0;
      return;
    }
  }
  const any = byId('map').querySelector('.cell');
  if (any) any.tabIndex = 0;
}
