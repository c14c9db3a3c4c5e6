/** Messages between a worker and its threads for sessions; each session has a port. */
import type { MessagePort } from 'node:worker_threads';
import type { ErrorData } from '../../../base/error-data.ts';
import type { Bundle } from '../../../bots/bundle.ts';
import type { SpecChanges } from '../../../bots/hosted.ts';
import type { Opening } from '../../../engine/portfolio.ts';
import type { SessionState } from '../../../events/session-state.ts';
import type { Dataset, LoadOptions } from '../../../market/load-dataset.ts';
import type { LiveSource } from '../../live-worker.ts';
import type { CodeLimits } from '../../sandbox/hosted-run.ts';
import type { SessionBatch, SessionInput } from '../../session-events.ts';
import type { SessionSupervision } from '../../session-supervision.ts';

export interface SessionWork {
  readonly runId: string;
  /** The spec as authored. */
  readonly document: unknown;
  /** Custom code and models. */
  readonly files?: Bundle | undefined;
  readonly customCode?: CodeLimits | undefined;
  readonly input: SessionChoices;
  /** Last recorded batch, and the state after it. */
  readonly recorded: { readonly state: SessionState; readonly batches: number };
  readonly catalogueDir: string;
  /** Time limit of a step of custom code, ms. */
  readonly timeoutMs: number;
  /** Directory for the result files. */
  readonly directory: string;
}

export interface SessionChoices extends SpecChanges {
  /** Multiple of the market's pace; `max` does not wait between bars. */
  readonly speed: number | 'max';
  /** Live bars of this exchange instead of bars of the catalogue. */
  readonly live?: { readonly exchange: string };
  /** Cash of the spec, with the share of the loss limits that the previous live session used. */
  readonly opening?: Opening;
}

export interface TaskBatch extends SessionBatch {
  /** Total number of steps; null if unknown, as with live bars. */
  readonly total: number | null;
}

/** Event that recorded an input. */
export interface RecordedInput {
  readonly kind: SessionInput['kind'];
  /** JSON. */
  readonly payload: string;
}

/** Calls that a session makes to its worker. */
export interface WorkerCalls {
  /** Returns the next recorded inputs; none after the last. */
  readonly inputs: () => Promise<readonly RecordedInput[]>;
  readonly readSupervision: () => Promise<SessionSupervision>;
  readonly load: (options: LoadOptions) => Promise<Dataset>;
  /** Opens a port that receives live bars. */
  readonly live: (source: LiveSource) => Promise<MessagePort>;
  /** Resolves when the batch is written. If it throws, the session has ended. */
  readonly record: (batch: TaskBatch) => Promise<void>;
}

export interface Call {
  readonly id: number;
  readonly name: keyof WorkerCalls;
  readonly argument: unknown;
}

export type FromSession<Done = unknown> =
  | Call
  /** Undefined if the session was stopped before its first bars. */
  | { readonly done: Done | undefined }
  | { readonly error: ErrorData; readonly bug?: unknown };

export type ToSession =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly error: ErrorData }
  | 'stop';

/** Starts a session in a thread, or asks whether the thread responds. */
export type ToThread = { readonly work: SessionWork; readonly port: MessagePort } | 'ping';
