// The timeline as a picture: time flows to the right, one column per step, so that what came first is left of what
// came next however close they were. A kill is a bar across all lanes.
const LANE = 40;
const IN_LANE = {
  attempt: 'provider', reply: 'provider', lookup: 'provider', provider: 'provider',
  effect: 'recipient', ledger: 'ledger', final: 'ledger',
};
const KIND_WORDS = {
  worker: 'worker', boundary: 'boundary', fault: 'fault', killed: 'kill', attempt: 'attempt', effect: 'effect',
  reply: 'reply', lookup: 'lookup', provider: 'provider', ledger: 'ledger', settled: 'at rest', final: 'last look',
  trial: 'trial', machine: 'machine',
};

// The columns of a timeline: steps, and gaps where some are left out.
function columnsOf(timeline) {
  const columns = [];
  for (const [generation, steps, after] of timeline) {
    for (const [event, at, kind, place, evidence, before] of steps) {
      if (before) columns.push({ generation, gap: before });
      columns.push({ generation, event, at, kind: DATA.kinds[kind], text: text(place), evidence: Boolean(evidence) });
    }
    if (after) columns.push({ generation, gap: after });
  }
  return columns;
}

function lanesOf(columns) {
  const generations = [...new Set(columns.map((column) => column.generation))];
  const lanes = generations.map((generation) => ({
    key: generation,
    name: generation === 0 ? 'before the start' : `generation ${generation}`,
  }));
  return [...lanes, ...['ledger', 'provider', 'recipient'].map((key) => ({ key, name: key }))];
}

const stepWords = (step) =>
  `event ${step.event}, +${duration(step.at / 1000)}, ${KIND_WORDS[step.kind]}${step.evidence ? ', evidence' : ''}: ${step.text}`;

function drawPicture(timeline) {
  const columns = columnsOf(timeline);
  const lanes = lanesOf(columns);
  const at = (column) => `${((column + 0.5) / columns.length) * 100}%`;
  const laneOf = (column) => lanes.findIndex(({ key }) => key === (IN_LANE[column.kind] || column.generation));
  const middle = (lane) => lane * LANE + LANE / 2;
  const plot = element('div', { class: 'plot' }, drawLines(columns, lanes, at, laneOf, middle));
  plot.style.height = `${lanes.length * LANE}px`;
  const readout = element('p', { class: 'readout step' });
  columns.forEach((column, index) => {
    const marker = column.gap ? gapMarker(column) : stepMarker(column, readout);
    marker.style.left = at(index);
    marker.style.top = `${middle(laneOf(column))}px`;
    if (column.kind === 'killed') plot.append(killFlag(column, at(index)));
    plot.append(marker);
  });
  const first = plot.querySelector('.marker.evidence') || plot.querySelector('.marker');
  if (first) first.tabIndex = 0;
  tell(readout, columns.find((column) => column.evidence) || columns.find((column) => column.event));
  moveAlong(plot);
  const wide = element('div', { class: 'wide' }, plot, drawAxis(columns, at));
  wide.style.minWidth = `${columns.length * 16}px`;
  const names = element('div', { class: 'lanes', 'aria-hidden': 'true' },
    lanes.map(({ name }) => element('span', {}, name)));
  const body = element('div', { class: 'timeline', tabindex: 0, role: 'group', 'aria-label': 'Timeline; arrow keys go from step to step' },
    names, wide);
  return element('div', { class: 'picture' }, body, readout, drawLegend(columns));
}

// What lies behind the marks: lanes, lives of the worker, exchanges, kills. The marks say the same to a reader.
function drawLines(columns, lanes, at, laneOf, middle) {
  const lines = shape('svg', { 'aria-hidden': 'true', class: 'lines', width: '100%', height: lanes.length * LANE });
  const line = (style, x1, y1, x2, y2) => lines.append(shape('line', { class: style, x1, y1, x2, y2 }));
  lanes.forEach((_, lane) => line('lane', '0', middle(lane), '100%', middle(lane)));
  lanes.forEach(({ key }, lane) => {
    if (typeof key !== 'number' || key === 0) return;
    const own = columns.map((column, index) => [column, index]).filter(([column]) => column.generation === key);
    const lives = own.findIndex(([column]) => column.kind === 'worker');
    const ends = own.findLastIndex(([column]) => column.kind === 'killed' || column.kind === 'worker');
    if (lives >= 0) line('life', at(own[lives][1]), middle(lane), at(own[Math.max(lives, ends)][1]), middle(lane));
  });
  const lane = (key) => middle(lanes.findIndex((one) => one.key === key));
  columns.forEach((column, index) => {
    const x = at(index), from = lane(column.generation), provider = lane('provider');
    if (column.kind === 'attempt') line('send', x, from, x, provider);
    if (column.kind === 'lookup') line('ask', x, from, x, provider);
    if (column.kind === 'reply') line('answer', x, from, x, provider);
    if (column.kind === 'effect') line(column.evidence ? 'lands wrong' : 'lands', x, provider, x, lane('recipient'));
    if (column.kind === 'killed') line('kill', x, 0, x, '100%');
  });
  return lines;
}

const killFlag = (column, left) => {
  const flag = element('span', { class: 'flag', 'aria-hidden': 'true' }, 'kill');
  flag.style.left = left;
  return flag;
};

const gapMarker = ({ gap }) =>
  element('span', { class: 'gap', title: `${counted(gap, 'step')} left out`, role: 'img', 'aria-label': `${counted(gap, 'step')} left out` }, '⋯');

function stepMarker(step, readout) {
  const show = () => tell(readout, step);
  return element('button', {
    type: 'button',
    class: `marker ${step.kind}${step.evidence ? ' evidence' : ''}`,
    'aria-label': stepWords(step),
    'data-event': step.event,
    tabindex: -1,
    onmouseenter: show, onfocus: show, onclick: show,
  }, element('span', { class: 'dot' }), step.evidence ? element('span', { class: 'number' }, `${step.event}`) : null);
}

function tell(readout, step) {
  if (!step) return;
  readout.replaceChildren(
    element('span', { class: 'when' }, `event ${step.event} · +${duration(step.at / 1000)}`),
    element('strong', {}, ` ${KIND_WORDS[step.kind]}${step.evidence ? ' · evidence' : ''}`),
    ` ${step.text}`);
}

function moveAlong(plot) {
  const go = (find) => (from) => {
    const markers = [...plot.querySelectorAll('.marker')];
    const to = find(markers, markers.indexOf(from));
    to?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    return to;
  };
  roving(plot, '.marker', {
    ArrowRight: go((markers, at) => markers[at + 1]),
    ArrowLeft: go((markers, at) => markers[at - 1]),
    Home: go((markers) => markers[0]),
    End: go((markers) => markers.at(-1)),
  });
}

function drawAxis(columns, at) {
  const axis = element('div', { class: 'axis', 'aria-hidden': 'true' });
  const every = Math.max(3, Math.ceil(columns.length / 12));
  columns.forEach((column, index) => {
    // The last one would stand out at the right.
    if (column.gap || index % every !== Math.floor(every / 2) || index > columns.length * 0.92) return;
    const tick = element('span', {}, `+${duration(column.at / 1000)}`);
    tick.style.left = at(index);
    axis.append(tick);
  });
  return axis;
}

function drawLegend(columns) {
  const present = new Set(columns.map((column) => column.kind));
  const items = Object.entries(KIND_WORDS).filter(([kind]) => present.has(kind));
  return element('ul', { class: 'legend', 'aria-label': 'Signs' },
    items.map(([kind, word]) => element('li', {}, element('span', { class: `marker still ${kind}`, 'aria-hidden': 'true' }, element('span', { class: 'dot' })), word)),
    element('li', {}, element('span', { class: 'marker still evidence', 'aria-hidden': 'true' }, element('span', { class: 'dot' })), 'evidence, with its event’s number'));
}
