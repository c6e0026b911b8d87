// The page in Chromium. PAGES is the folder of the pages, MODULES the one below which the modules lie, CHROMIUM the
// program.
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { FLAGS } from './flags.mjs';

const require = createRequire(path.join(process.env.MODULES, 'package.json'));
const { chromium } = require('playwright-core');
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const PAGES = ['stored', 'profile', 'hostile', 'flood'];

let browser;
before(async () => { browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS }); });
after(async () => { await browser.close(); });

const address = (name) => pathToFileURL(path.join(process.env.PAGES, `${name}.html`)).href;

// Opens a page, hands it over, and then holds against it what it complained of, asked for and popped up.
async function opened(name, options, look) {
  const { hash = '', ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...rest });
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  const complaints = [];
  page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(error.stack));
  page.on('dialog', (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => {
    if (!request.url().startsWith('data:') && request.url().split('#')[0] !== address(name)) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(address(name) + hash);
  await look(page);
  assert.deepEqual(complaints, []);
  await context.close();
}

// Through the protocol, which the page's policy does not bind.
async function axe(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations.flatMap(({ id, nodes }) => nodes.slice(0, 4).map((node) => `${id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`));
}

const rows = (page) => page.locator('#list tbody tr:not(.spacer)');
const pageWidth = (page) => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);

for (const name of PAGES) {
  for (const colorScheme of name === 'stored' ? ['light', 'dark'] : name === 'profile' ? ['dark'] : ['light']) {
    test(`${name} is accessible and quiet in ${colorScheme}`, async () => {
      await opened(name, { colorScheme }, async (page) => {
        if (name !== 'flood') for (const summary of await page.locator('summary').all()) await summary.click();
        assert.deepEqual(await axe(page), []);
        const paper = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
        const brightness = Number(paper.match(/\d+/)[0]);
        assert.equal(brightness < 128, colorScheme === 'dark', paper);
      });
    });
  }

  test(`${name} fits a narrow window and paper`, async () => {
    await opened(name, { viewport: { width: 320, height: 640 } }, async (page) => {
      const [width, room] = await pageWidth(page);
      assert.ok(width <= room, `${width} of ${room}`);
    });
    await opened(name, { viewport: { width: 720, height: 900 } }, async (page) => {
      await page.emulateMedia({ media: 'print' });
      await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
      const [width, room] = await pageWidth(page);
      assert.ok(width <= room, `${width} of ${room}`);
      assert.equal(await page.locator('#filters').isVisible(), false);
      assert.equal(await page.locator('h1').isVisible(), true);
      const [lanes, picture] = await Promise.all(['.timeline', '.wide'].map((part) => page.locator(part).first().boundingBox()));
      assert.ok(picture.x + picture.width <= lanes.x + lanes.width + 1, 'the picture is as wide as the paper');
      await page.locator('.steps').waitFor();
    });
  });

  test(`${name} can be read without JavaScript`, async () => {
    await opened(name, { javaScriptEnabled: false }, async (page) => {
      assert.match(await page.locator('h1').innerText(), /violated/);
      assert.ok(await page.locator('table.rows tbody tr').count() > 1);
      assert.ok(await page.locator('article.told').count() > 0);
      for (const scripted of await page.locator('.scripted').all()) assert.equal(await scripted.isVisible(), false);
      assert.equal(await page.locator('#not-shown').isVisible(), true);
    });
  });
}

test('what a worker wrote is text and runs nothing', async () => {
  await opened('hostile', {}, async (page) => {
    await page.locator('#jump').click();
    for (const summary of await page.locator('summary').all()) await summary.click();
    await page.locator('.marker').first().hover();
    assert.equal(await page.evaluate(() => globalThis.ran), undefined);
    const strange = await page.locator('img, iframe, object, embed, b, main script, body > style').count();
    assert.equal(strange, 0);
    const said = await page.locator('main').innerText();
    for (const part of ["<script>window.ran='script'</script>", '"><img src=x onerror=', '{{7*7}}', '&lt;b&gt;', '\\u{202e}', '\\x00', '\\u{2028}']) {
      assert.ok(said.includes(part), part);
    }
    assert.ok(!/[\u202a-\u202e\u2066-\u2069\u2028\0]/.test(await page.evaluate(() => document.documentElement.outerHTML)));
    await page.locator('#text').fill("</script><img src=x onerror=\"window.ran='filter'\">");
    await page.locator('#text').fill('onerror');
    assert.ok(await rows(page).count() > 0);
    assert.equal(await page.evaluate(() => globalThis.ran), undefined);
  });
  await opened('hostile', { hash: '#text=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&trial=__proto__&verdict=constructor&boundary=%00' }, async (page) => {
    assert.equal(await rows(page).count(), 0);
    assert.match(await page.locator('#trial').innerText(), /No trial matches/);
  });
});

test('filters are kept in the address and survive a reload', async () => {
  await opened('stored', {}, async (page) => {
    const all = await rows(page).count();
    await page.locator('[data-verdict=violated]').click();
    const violated = await rows(page).count();
    assert.ok(violated > 0 && violated < all, `${violated} of ${all}`);
    await page.locator('#plan').selectOption('ok');
    await page.locator('#boundary').fill('provider:');
    await page.locator('#text').fill('no-duplicate-effect');
    const left = await rows(page).allInnerTexts();
    assert.ok(left.length > 0 && left.length < violated && left.every((text) => text.includes('provider:')), left.join());
    const place = page.url();
    for (const word of ['verdict=violated', 'plan=ok', 'boundary=provider', 'text=no-duplicate-effect']) assert.ok(place.includes(word), place);
    await page.locator('#trial .next').click();
    const title = await page.locator('#trial-title').innerText();
    await page.reload();
    assert.deepEqual(await rows(page).allInnerTexts(), left);
    assert.equal(await page.locator('#text').inputValue(), 'no-duplicate-effect');
    assert.equal(await page.locator('[data-verdict=violated]').getAttribute('aria-pressed'), 'true');
    assert.equal(await page.locator('#trial-title').innerText(), title);
    await page.locator('#clear').click();
    assert.equal(await rows(page).count(), all);
    assert.ok(!page.url().includes('verdict='));
  });
});

test('the button jumps to the first violation, even behind filters', async () => {
  await opened('stored', { hash: '#verdict=holds' }, async (page) => {
    assert.match(await page.locator('#trial-title').innerText(), /holds/);
    await page.locator('#jump').click();
    assert.match(await page.locator('#trial-title').innerText(), /violated\s*provider:received#1 × ok/);
    const focused = page.locator(':focus');
    assert.match(await focused.getAttribute('aria-label'), /^event \d+, .*evidence/);
    assert.equal(await focused.evaluate((marker) => { const box = marker.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight; }), true);
  });
});

test('the picture shows time from left to right, and a kill across all lanes', async () => {
  await opened('stored', { hash: '#trial=0006-kill-at-provider-committed-1' }, async (page) => {
    const names = await page.locator('.lanes span').allInnerTexts();
    assert.deepEqual(names.slice(-5), ['generation 1', 'generation 2', 'ledger', 'provider', 'recipient']);
    const boxes = await page.locator('.marker:not(.still)').evaluateAll((markers) => markers.map((marker) => [Number(marker.dataset.event), marker.getBoundingClientRect().x]));
    assert.ok(boxes.length > 20);
    for (let at = 1; at < boxes.length; at++) assert.ok(boxes[at][0] > boxes[at - 1][0] && boxes[at][1] > boxes[at - 1][1], `${boxes[at]}`);
    const [kill, lines] = await Promise.all(['.lines .kill', '.lines'].map((part) => page.locator(part).boundingBox()));
    assert.ok(Math.abs(kill.height - lines.height) <= 4, `${kill.height} of ${lines.height}`);
    const wrong = page.locator('.marker.evidence.effect');
    assert.ok(await wrong.count() >= 2, 'both effects are marked');
    await wrong.first().hover();
    assert.match(await page.locator('.readout.step').innerText(), /^event \d+ .* effect · evidence .* committed: user1@example.com receives/);
    const event = page.locator('.finding .event').first();
    const number = await event.innerText();
    await event.click();
    assert.equal(await page.locator(':focus').getAttribute('data-event'), number);
    const table = await page.locator('.steps tbody tr:not(.gap-row)').count();
    assert.equal(table, boxes.length, 'the table says the same');
  });
});

test('the keyboard reaches everything', async () => {
  await opened('stored', {}, async (page) => {
    const reached = new Set();
    for (let tabs = 0; tabs < 150; tabs++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => {
        const { id, className, dataset } = document.activeElement;
        return [id && `#${id}`, ...`${className}`.split(' ').filter(Boolean).map((name) => `.${name}`), dataset.verdict, dataset.copy].filter(Boolean);
      });
      at.forEach((name) => reached.add(name));
    }
    for (const part of ['.skip', '#theme', '#jump', 'violated', 'holds', '#boundary', '#plan', '#text', '#map', '.cell', '#trial',
      '.next', '.event', '.timeline', '.marker', 'replay', '#list', '.open'].filter((part) => part !== '#trial')) {
      assert.ok(reached.has(part), `${part} of ${[...reached].join(' ')}`);
    }
    await page.locator('.cell[tabindex="0"]').focus();
    const first = await page.locator(':focus').getAttribute('aria-label');
    await page.keyboard.press('ArrowDown');
    const second = await page.locator(':focus').getAttribute('aria-label');
    assert.notEqual(first, second);
    await page.keyboard.press('Enter');
    assert.ok((await page.locator('#trial-title').innerText()).replace(/\s+/g, ' ').includes(second.split(':').slice(0, -1).join(':').split(' × ')[0]));
    await page.locator('.marker[tabindex="0"]').focus();
    await page.keyboard.press('Home');
    const start = await page.locator(':focus').getAttribute('data-event');
    await page.keyboard.press('ArrowRight');
    assert.ok(Number(await page.locator(':focus').getAttribute('data-event')) > Number(start));
    await page.locator('.open').first().focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await page.locator(':focus').innerText(), await page.locator('.open').nth(1).innerText());
  });
});

test('the theme can be chosen and is kept', async () => {
  await opened('stored', { colorScheme: 'dark' }, async (page) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const dark = await paper();
    await page.locator('#theme').click();
    assert.equal(await page.locator('#theme').innerText(), 'Theme: light');
    assert.notEqual(await paper(), dark);
    await page.reload();
    assert.equal(await page.locator('#theme').innerText(), 'Theme: light');
    await page.locator('#theme').click();
    assert.equal(await paper(), dark);
  });
});

test('a replay line can be copied', async () => {
  await opened('stored', { permissions: ['clipboard-read', 'clipboard-write'] }, async (page) => {
    await page.locator('[data-copy=replay]').click();
    await page.locator('[data-copy=replay]', { hasText: /Copied/ }).waitFor();
    const line = await page.locator('#replay').innerText();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), line);
    assert.match(line, /^killpoint demo --bug blind-resend --boundary '/);
  });
});

test('ten thousand trials stay light', async () => {
  assert.ok(statSync(path.join(process.env.PAGES, 'flood.html')).size < 3_000_000);
  await opened('flood', {}, async (page) => {
    const count = await page.evaluate(() => document.querySelectorAll('*').length);
    assert.ok(count < 6000, `${count} elements`);
    assert.ok(await rows(page).count() < 200);
    const list = page.locator('#list');
    await list.evaluate((scroller) => { scroller.scrollTop = scroller.scrollHeight; });
    const last = Number(await page.locator('#list table').getAttribute('aria-rowcount'));
    await page.locator(`#list tr[aria-rowindex="${last}"]`).waitFor();
    await page.locator('#list tbody tr:not(.spacer) .open').last().focus();
    await page.keyboard.press('ArrowUp');
    assert.equal(await page.locator(':focus').evaluate((open) => Number(open.closest('tr').getAttribute('aria-rowindex'))), last - 1);
    await page.locator('#text').fill('9998-kill');
    assert.equal(await rows(page).count(), 1);
    await page.locator('#text').fill('');
    await page.locator('.cell[tabindex="0"]').focus();
    for (let step = 0; step < 60; step++) await page.keyboard.press('ArrowDown');
    const line = await page.locator(':focus').evaluate((cell) => Number(cell.closest('tr').getAttribute('aria-rowindex')));
    assert.ok(line > 60, `${line}`);
  });
});
