// One trial in full.
function drawTrial() {
  const title = byId('trial-title'), body = byId('trial-body'), trial = state.trial;
  if (!trial) {
    title.replaceChildren('Trial');
    byId('trial-steps').replaceChildren();
    body.replaceChildren(element('p', { class: 'hint' }, 'No trial matches the filters.'));
    return;
  }
  const { row, full } = trial;
  title.replaceChildren(
    element('span', { class: `verdict-word ${VERDICTS[trial.verdict].style}` }, mark(trial.verdict), ` ${VERDICTS[trial.verdict].word}`),
    element('span', { class: 'what' }, `${row.boundary} × ${row.plan}`));
  byId('trial-steps').replaceChildren(...drawSteps(trial));
  body.replaceChildren(...[
    drawRepetitions(trial),
    drawFacts(trial),
    ...(full ? drawFull(trial) : [notHere()]),
    element('div', { class: 'command' },
      element('span', { class: 'label' }, 'Replay'),
      element('code', { id: 'replay' }, trial.replay()),
      element('button', { type: 'button', class: 'plain', 'data-copy': 'replay' }, 'Copy', element('span', { class: 'hidden' }, ' the replay line'))),
  ].filter(Boolean));
}

const notHere = () => element('p', { class: 'hint' },
  'To keep this file small, this trial is not told in full here. Its history is in the run’s folder; the line below does it again.');

// Previous and next among the rows that match.
function drawSteps(trial) {
  const place = shown.indexOf(trial.row);
  return [[-1, 'previous', '← Previous'], [1, 'next', 'Next →']].map(([step, style, words]) => {
    const to = shown[place < 0 ? 0 : place + step];
    return element('button', {
      type: 'button', class: `plain ${style}`, disabled: !to,
      onclick: () => { choose(to.first); byId('trial-steps').querySelector(`.${style}`)?.focus(); },
    }, words);
  });
}

function drawRepetitions({ row, folder }) {
  if (row.trials.length < 2) return null;
  return element('div', { class: 'repetitions', role: 'group', 'aria-label': 'Repetitions' },
    element('span', { class: 'quiet' }, `${share(row.trials, row.verdict)} `),
    row.trials.map((one) => element('button', {
      type: 'button', class: 'chip', 'aria-pressed': one.folder === folder ? 'true' : 'false',
      'aria-label': `repetition ${one.repetition}: ${VERDICTS[one.verdict].word}`,
      onclick: () => { choose(one); byId('trial').querySelector('.repetitions [aria-pressed="true"]')?.focus(); },
    }, mark(one.verdict), ` ${one.repetition}`)));
}

function drawFacts({ row, counters, ms, folder, repetition }) {
  const fact = (name, value) => element('div', {}, element('dt', {}, name), element('dd', {}, value));
  const numbers = counters ? [fact('Attempts', `${counters[0]}`), fact('Effects', `${counters[1]}`), fact('Acknowledged', `${counters[2]}`)] : [];
  return element('dl', { class: 'facts' }, numbers, fact('Time', duration(ms)),
    row.scenario ? fact('Scenario', row.scenario) : null,
    row.trials.length > 1 ? fact('Repetition', `${repetition}`) : null,
    fact('Folder', element('code', {}, folder)));
}

function drawFull({ full }) {
  return [
    ...full.judged.map(drawJudged),
    full.missing.length || full.evidence.some(([, present]) => present === false) ? drawMissing(full) : null,
    full.timeline ? drawTimeline(full.timeline) : element('p', { class: 'hint' }, full.cut
      ? 'To keep this file small, the timeline of this trial is not in it. Its history is in the run’s folder; the line below does the trial again.'
      : 'There is no history of this trial, so no timeline.'),
    full.actions.length ? drawActions(full) : null,
    full.notes[0].length ? drawNotes(full.notes) : null,
    full.evidence.length ? drawEvidence(full.evidence) : null,
  ];
}

function drawJudged([invariant, status, looked, [findings, more]]) {
  return element('div', { class: `finding ${status}` },
    element('h3', {}, text(invariant), element('span', { class: 'quiet' }, ` ${status}, looked at ${looked}`)),
    element('ul', { class: 'findings' }, findings.map(drawFinding), more ? element('li', {}, `… ${more} more`) : null));
}

function drawFinding([, message, subject, events, more]) {
  return element('li', {}, text(message),
    element('span', { class: 'evidence-line' }, text(subject) ? `about ${text(subject)} · ` : '', eventLinks(events, more)));
}

// The numbers of events; those in the picture lead there.
function eventLinks(events, more) {
  const links = events.flatMap((event, index) => [index ? ' ' : '', element('button', {
    type: 'button', class: 'event', 'aria-label': `event ${event} in the timeline`,
    onclick: () => showEvent(event),
  }, `${event}`)]);
  return element('span', {}, events.length === 1 ? 'event ' : 'events ', links, more ? ` … ${more} more` : '');
}

function showEvent(event) {
  const marker = byId('trial').querySelector(`.marker[data-event="${Number(event)}"]`);
  if (!marker) return;
  for (const one of byId('trial').querySelectorAll('.marker[tabindex="0"]')) one.tabIndex = -1;
  marker.tabIndex = 0;
  marker.scrollIntoView({ block: 'nearest', inline: 'center' });
  marker.focus({ preventScroll: true });
}

function drawMissing({ missing, evidence }) {
  const absent = evidence.filter(([, present]) => present === false).map(([name]) => text(name));
  return element('div', { class: 'finding missing' },
    element('h3', {}, 'Evidence that is missing', absent.length ? element('span', { class: 'quiet' }, ` ${absent.join(', ')}`) : null),
    element('ul', { class: 'findings' }, missing.map((place) => element('li', {}, text(place)))));
}

function drawTimeline(timeline) {
  const count = timeline.reduce((sum, [, steps]) => sum + steps.length, 0);
  return element('section', { class: 'told-timeline', 'aria-label': 'Timeline' },
    element('h3', {}, 'Timeline', element('span', { class: 'quiet' }, ' time flows to the right; steps are evenly spaced')),
    drawPicture(timeline),
    element('details', {}, element('summary', {}, `The same as a table, ${counted(count, 'step')}`), drawStepTable(timeline)));
}

function drawStepTable(timeline) {
  const heads = ['Event', 'Time', 'Generation', 'Kind', 'What happened'];
  const gap = (steps) => element('tr', { class: 'gap-row' }, element('td', { colspan: 5 }, `… ${steps} more`));
  const rows = timeline.flatMap(([generation, steps, after]) => [
    ...steps.flatMap(([event, at, kind, place, evidence, before]) => [
      before ? gap(before) : null,
      element('tr', { class: evidence ? 'evidence' : null },
        element('td', {}, `${event}`), element('td', {}, `+${duration(at / 1000)}`), element('td', {}, `${generation}`),
        element('td', {}, KIND_WORDS[DATA.kinds[kind]]),
        element('td', {}, text(place), evidence ? element('strong', {}, ' (evidence)') : null)),
    ]),
    after ? gap(after) : null,
  ]);
  return element('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Steps' },
    element('table', { class: 'steps' },
      element('thead', {}, element('tr', {}, heads.map((head) => element('th', { scope: 'col' }, head)))),
      element('tbody', {}, rows)));
}

function drawActions({ actions, actions_more: more }) {
  const heads = ['What became of it', 'Action', 'Recipient', 'Effects', 'The worker says', 'Events'];
  const rows = actions.map(([verdict, bad, action, recipient, effects, expected, state, events]) => element('tr', {},
    element('td', { class: bad ? 'violated' : 'holds' }, element('span', { class: 'mark', 'aria-hidden': 'true' }, bad ? '✗' : '✓'), ` ${verdict}`),
    element('th', { scope: 'row' }, text(action)), element('td', {}, text(recipient)),
    element('td', {}, `${effects} of ${expected}`), element('td', {}, text(state) || '–'),
    element('td', {}, events.length ? eventLinks(events, 0) : '–')));
  return element('div', {},
    element('h3', {}, 'Actions'),
    element('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Actions' },
      element('table', { class: 'actions' },
        element('thead', {}, element('tr', {}, heads.map((head) => element('th', { scope: 'col' }, head)))),
        element('tbody', {}, rows))),
    more ? element('p', { class: 'hint' }, `… ${more} more`) : null);
}

const drawNotes = ([notes, more]) => element('div', { class: 'finding' },
  element('h3', {}, 'Notes', element('span', { class: 'quiet' }, ' no violation under this promise')),
  element('ul', { class: 'findings' },
    notes.map((note) => element('li', {}, element('strong', {}, `${text(note[0])}: `), ...drawFinding(note).childNodes)),
    more ? element('li', {}, `… ${more} more`) : null));

function drawEvidence(evidence) {
  const told = (present) => (present === null ? ['–', 'not part of the plan', 'none'] : present ? ['✓', 'there', 'holds'] : ['✗', 'missing', 'violated']);
  return element('div', {},
    element('h3', {}, 'Evidence that this trial was what it was for'),
    element('ul', { class: 'pieces' }, evidence.map(([name, present]) => {
      const [sign, word, style] = told(present);
      return element('li', { class: style }, element('span', { class: 'mark', 'aria-hidden': 'true' }, sign), ` ${text(name)}`, element('span', { class: 'hidden' }, `: ${word}`));
    })));
}
