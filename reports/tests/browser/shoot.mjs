// Pictures for the documentation: node shoot.mjs PAGES IMAGES. MODULES is the folder below which the modules lie,
// CHROMIUM the program.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { FLAGS } from './flags.mjs';

const require = createRequire(path.join(process.env.MODULES, 'package.json'));
const { chromium } = require('playwright-core');
const [pages, images] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });

async function shoot(name, file, viewport, hash, area) {
  const context = await browser.newContext({ viewport, colorScheme: 'light' });
  const page = await context.newPage();
  await page.goto(pathToFileURL(path.join(pages, file)).href + hash);
  const shot = { path: path.join(images, name) };
  if (area) await page.locator(area).screenshot(shot);
  else await page.screenshot(shot);
  await context.close();
}

await shoot('report.png', 'killpoint-html.html', { width: 1300, height: 1115 }, '#trial=0006-kill-at-provider-committed-1');
await shoot('terminal.png', 'terminal.html', { width: 1000, height: 800 }, '', 'pre');
await browser.close();
