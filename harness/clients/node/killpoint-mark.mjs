// One call by which a worker names a boundary for killpoint: mark('result-committed').
//
// Outside a trial the variable KILLPOINT_SOCKET is unset and the call returns at once, so it can stay in
// production code. Inside a trial it blocks until the harness answers, without a limit of its own: being held
// at this very moment is what it is for.

import { connect } from 'node:net';
import { MessageChannel, Worker, receiveMessageOnPort } from 'node:worker_threads';

const SOCKET_VARIABLE = 'KILLPOINT_SOCKET';
const NAME_BYTES_MAX = 200;
const ANSWER_BYTES_MAX = 4096;

/** The mark was not made. The worker should stop: its trial proves nothing. */
export class MarkError extends Error {
  name = 'MarkError';
}

/**
 * Names this moment, such as `result-committed` or `result-committed[job-7]`, and blocks the whole thread, so
 * that nothing else of the worker goes on meanwhile. Throws MarkError for an invalid name (outside a trial
 * too, so that a typo can't hide until then) and whenever the harness does not say "go".
 */
export function mark(name) {
  checkName(name);
  const path = process.env[SOCKET_VARIABLE];
  if (path) judge(name, path, exchangeBlocking(path, lineOf(name)));
}

/** The same without blocking the event loop: other work of the worker goes on while it is held. */
export async function markAsync(name) {
  checkName(name);
  const path = process.env[SOCKET_VARIABLE];
  if (path) judge(name, path, await exchange(connect, path, lineOf(name), ANSWER_BYTES_MAX));
}

const lineOf = (name) => `killpoint-mark 1 ${name}\n`;

// Sends the line and resolves to { answer } or, where no connection came about, { unreachable }. It must stand
// alone: its source text also runs in the helper thread.
function exchange(connect, path, line, answerBytesMax) {
  return new Promise((resolve) => {
    let connected = false;
    let answer = Buffer.alloc(0);
    const stream = connect(path);
    const end = (outcome) => {
      stream.destroy();
      resolve(outcome);
    };
    stream.on('connect', () => {
      connected = true;
      stream.write(line);
    });
    stream.on('data', (piece) => {
      answer = Buffer.concat([answer, piece]);
      const newline = answer.indexOf(10);
      if (newline >= 0) end({ answer: answer.toString('utf8', 0, newline + 1) });
      else if (answer.length >= answerBytesMax) end({ answer: '' });
    });
    stream.on('error', (cause) => end(connected ? { answer: '' } : { unreachable: cause.message }));
    stream.on('end', () => end({ answer: '' }));
  });
}

// The event loop can't turn while this thread waits, so a helper thread has the connection.
function exchangeBlocking(path, line) {
  const done = new Int32Array(new SharedArrayBuffer(4));
  const { port1, port2 } = new MessageChannel();
  const source = `
    const { workerData } = require('node:worker_threads');
    const { connect } = require('node:net');
    const { path, line, answerBytesMax, port, done } = workerData;
    (${exchange})(connect, path, line, answerBytesMax).then((outcome) => {
      port.postMessage(outcome);
      port.close();
      Atomics.store(done, 0, 1);
      Atomics.notify(done, 0);
    });`;
  const helper = new Worker(source, {
    eval: true,
    execArgv: [],
    workerData: { path, line, answerBytesMax: ANSWER_BYTES_MAX, port: port2, done },
    transferList: [port2],
  });
  helper.unref();
  Atomics.wait(done, 0, 0);
  const received = receiveMessageOnPort(port1);
  port1.close();
  return received.message;
}

function judge(name, path, { answer, unreachable }) {
  if (unreachable !== undefined) throw new MarkError(`can't reach killpoint at ${path}: ${unreachable}`);
  if (answer === 'go\n') return;
  if (answer.startsWith('error ')) throw new MarkError(`killpoint refused the mark: ${answer.slice(6, -1)}`);
  throw new MarkError(`killpoint closed the connection without a valid answer to the mark \`${name}\``);
}

function checkName(name) {
  const why = whyInvalid(name);
  if (why) throw new MarkError(`invalid mark name \`${String(name)}\`: ${why}`);
}

function whyInvalid(name) {
  if (typeof name !== 'string') return 'it must be text';
  const bytes = Buffer.byteLength(name);
  if (bytes < 1 || bytes > NAME_BYTES_MAX) return 'it must have 1 to 200 bytes';
  if (/[\p{White_Space}\p{Cc}]/u.test(name)) return 'it must have no white space and no control characters';
  if (name.includes('[') && !/^[^[]+\[.+\]$/u.test(name)) return 'a selector is `[text]` at the end';
  return null;
}
