/** Which worker and which trials; the words are those of `killpoint run`. */
export interface Options {
  /** The configuration; `killpoint.toml` unless `command` is given. */
  config?: string;
  /** A worker without a configuration. */
  command?: string[];
  /** Scenarios of the library by name, or scenario files. */
  scenario?: string | string[];
  /** Boundaries at which the worker is killed, such as `provider:committed#1`. */
  boundary?: string | string[];
  strategy?: 'scenario' | 'sweep';
  profile?: 'restart-safe' | 'pre-hosting';
  /** Trials at the same time. */
  jobs?: number;
  /** How often each trial is done. */
  repeat?: number;
  /** The program; `killpoint` on the PATH unless given. */
  program?: string;
  /** Where the program is started; paths start there. */
  cwd?: string;
  /** How long the run may take, in seconds; 600 unless given. */
  timeoutS?: number;
  /** Stops the run, and its workers. */
  signal?: AbortSignal;
}

export type Verdict = 'holds' | 'vacuous' | 'inconclusive' | 'violated';

/** A violation or a doubt, with the numbers of the events that show it. */
export interface Finding {
  invariant: string;
  status: 'violated' | 'inconclusive';
  message: string;
  subject: string;
  events: number[];
}

/** What became of one action at one destination. */
export interface Action {
  action: string;
  recipient: string;
  verdict: string;
  /** How often it was received. */
  effects: number;
  /** How often it was owed. */
  expected: number;
  state: string | null;
  events: number[];
}

/** One trial of a run. */
export interface Trial {
  /** A name that occurs again has its number behind it. */
  readonly name: string;
  /** `inconclusive` where it was not judged. */
  readonly verdict: Verdict;
  readonly holds: boolean;
  readonly boundary: string;
  readonly providerPlan: string;
  /** Violations and doubts. */
  readonly findings: Finding[];
  /** The names of the invariants that are violated, each once. */
  readonly violated: string[];
  /** What became of the actions; empty where the trial holds. */
  readonly actions: Action[];
  /** What is missing of its evidence, each with what to do. */
  readonly missing: string[];
  readonly judged: boolean;
  readonly counters: { attempts?: number; effects?: number; acknowledged?: number };
  /** The command that replays it alone. */
  readonly replay: string;
  /** Its folder, with the history and the worker's output. */
  readonly folder: string;
  /** Throws an AssertionError unless it holds. */
  assertHolds(): void;
  toString(): string;
}

/** A finished run. */
export interface Result {
  /** The worst wins. */
  readonly verdict: Verdict;
  readonly trials: Trial[];
  /** The trials that do not hold, worst first. */
  readonly notHolding: Trial[];
  readonly warnings: string[];
  /** The folder in which it is recorded. */
  readonly folder: string;
  readonly exitCode: number;
  /** The program's JSON report as it was. */
  readonly report: Record<string, unknown>;
  trial(name: string): Trial | undefined;
  /** Throws an AssertionError unless every trial holds with all of its evidence. */
  assertHolds(): void;
  toString(): string;
}

/** The program gave no verdict: nothing is known about the worker. */
export class KillpointError extends Error {
  readonly exitCode: number | null;
}

/** Runs killpoint and registers one subtest per trial; resolves once all are done. */
export function gate(options?: Options): Promise<void>;

/** Runs killpoint and gives what came out. Rejects with KillpointError where there is no verdict. */
export function run(options?: Options): Promise<Result>;

/** The result that the program reports, from its exit code and what it wrote. */
export function parse(exitCode: number, stdout: string, stderr: string): Result;
