// How long a page takes until it can be used: node load.mjs FILE TIMES. MODULES is the folder below which the modules
// lie, CHROMIUM the program.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { FLAGS } from './flags.mjs';

const require = createRequire(path.join(process.env.MODULES, 'package.json'));
const { chromium } = require('playwright-core');
const [file, times] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
const taken = [];
for (let time = 0; time < Number(times); time++) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(pathToFileURL(file).href);
  // The script has run and the first frame after it is drawn.
  taken.push(await page.evaluate(() => new Promise((done) => {
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
  })));
  await context.close();
}
await browser.close();
taken.sort((a, b) => a - b);
const ms = (number) => `${Math.round(number)} ms`;
console.log(`interactive after ${ms(taken[0])} at best, ${ms(taken[Math.floor(taken.length / 2)])} in the middle, ${ms(taken.at(-1))} at worst of ${taken.length}`);
