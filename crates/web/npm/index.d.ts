import type { OpenedCall, Replay, RunResult } from "./results.js";

export type * from "./results.js";

/** Loads the simulator: from the package's own file, or from WebAssembly's bytes or a module that is compiled. */
export function load(source?: BufferSource | WebAssembly.Module): Promise<Weir>;

/**
 * One simulator. Calls are synchronous: a run of 200 s takes some 30 ms, others seconds; a page keeps it in a Web Worker.
 * Every method throws a Fault where it cannot answer.
 */
export class Weir {
  private constructor(module: WebAssembly.Module);

  /** From WebAssembly's bytes, or a module that is compiled, which several workers can share. */
  static from(source: BufferSource | WebAssembly.Module): Promise<Weir>;

  /** The controllers, with their parameters. */
  controllers(): Controller[];

  /** The scenarios that ship with Weir, with their texts. */
  scenarios(): Scenario[];

  /** The JSON schema of scenario files. */
  schema(): Record<string, unknown>;

  /** Describes a scenario without running it. `text` replaces the shipped file's TOML. */
  outline(scenario: string, text?: string): Outline;

  /** One run of a scenario by name, such as "responsiveness". The same scenario and seed give the same bytes everywhere. */
  run(scenario: string, options?: RunOptions): Run;

  /** Opens a recorded call, of which there are one or several files. It stays open until the next one. */
  open(files: RecordedFile | RecordedFile[]): Opened;

  /** The controllers that recorded feedback is enough for. */
  replayed(): string[];

  /** Targets of controllers on the feedback of the call that is open: what each would have asked for. */
  replay(controllers: string[]): Replayed;

  /** Packets of the call that is open, between two times in s since its first one. Listed up to 1,000. */
  packets(fromS: number, toS: number): Packets;

  /** A request as the lab's page makes it, and its answer. */
  ask(request: Request, files?: Uint8Array[]): Answer;
}

/** A request that could not be answered. */
export class Fault extends Error {
  /** `crash`: the simulator has stopped, and was started again. */
  readonly kind: "request" | "scenario" | "run" | "recording" | "crash";
  /** Path of the field of a scenario, such as `links.bottleneck.rate`. */
  readonly field: string | null;
  /** Line of the scenario's text, from 1. */
  readonly line: number | null;
  /** Column in characters, from 1. */
  readonly column: number | null;
  /** The way out, if one is known. */
  readonly help: string | null;
}

export interface RunOptions {
  /** TOML of the scenario instead of the shipped file's. */
  text?: string;
  /** The file's first if there is none. */
  variant?: string;
  /** The file's first if there is none. */
  controller?: string;
  /** The scenario's if there is none. */
  seed?: number;
  /** Whether to return time series as well. */
  series?: boolean;
  /** Whether to return a digest of the result and the exact bits of its series, which is slow. */
  digest?: boolean;
}

export interface Run {
  /** The result as JSON: the bytes of `weir run --json`, but for the schema's name there. */
  text: string;
  /** The same, parsed. */
  result: RunResult;
  /** Empty unless series were asked for. */
  series: Series[];
  /** SHA-256 in hexadecimal, if it was asked for. */
  digest: string | null;
}

/** A time series; those of one run or call have the same length as its `time_s`. NaN stands for no value. */
export interface Series {
  kind: "run" | "flow" | "link" | "call" | "replay";
  /** Name of the flow, the link or the controller; empty for the run's or the call's own. */
  owner: string;
  name: string;
  values: Float64Array;
}

export interface RecordedFile {
  /** As it is shown. */
  name: string;
  bytes: Uint8Array;
}

export interface Opened {
  /** The object of `weir open --lint --json` as JSON, without its schema's name. */
  text: string;
  /** The same, parsed. */
  call: OpenedCall;
  series: Series[];
}

export interface Replayed {
  text: string;
  replays: Replay[];
  series: Series[];
}

export interface Packets {
  /** The file that has them: the one with most packets. */
  path: string;
  /** How many there are. */
  count: number;
  /** The most that are listed. */
  most: number;
  packets: Packet[];
}

export interface Packet {
  at_s: number;
  /** In the capture, else in order of time. */
  number: number;
  ssrc: string;
  direction: "sent" | "received" | "passing";
  sequence: number;
  timestamp: number;
  payload_type: number;
  size: number;
  marker: boolean;
  transport_sequence: number | null;
}

export interface Controller {
  name: string;
  summary: string;
  /** The document that it follows. */
  source: string;
  /** Whether it adapts its rate to the path. */
  adapts: boolean;
  params: Parameter[];
}

export interface Parameter {
  name: string;
  unit: string;
  default: number;
  min: number;
  max: number;
  doc: string;
}

export interface Scenario {
  name: string;
  title: string;
  doc: string;
  /** The controllers that it compares; none where it names its own. */
  controllers: string[];
  variants: string[];
  /** TOML. */
  text: string;
}

export interface Outline {
  name: string;
  title: string;
  doc: string;
  controllers: string[];
  variants: string[];
  duration_s: number;
  seed: number;
  bottleneck: string | null;
  text: string;
  /** Where the text states capacities. */
  capacities: unknown[];
}

export type Request =
  | { ask: "controllers" | "scenarios" | "schema" | "replayed" }
  | { ask: "outline"; name: string; text?: string }
  | ({ ask: "run"; name: string } & RunOptions)
  | { ask: "open"; names: string[] }
  | { ask: "replay"; controllers: string[] }
  | { ask: "packets"; from_s: number; to_s: number };

export interface Answer {
  /** JSON. */
  text: string;
  columns: { kind: Series["kind"]; owner: string; name: string; from: number; len: number }[];
  digest: string | null;
  /** All columns, one after the other. */
  numbers: Float64Array;
}
