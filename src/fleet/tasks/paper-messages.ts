/** What a session and the thread that writes for it tell each other, over a port of their own. */
import type { MessagePort } from 'node:worker_threads';
import type { Dataset, LoadOptions } from '../../market/load-dataset.ts';
import type { LiveSource } from '../../trading/live-worker.ts';
import type { SessionSupervision } from '../../trading/session-supervision.ts';
import type { ErrorData } from '../../base/error-data.ts';
import type { PaperDone } from './paper-session.ts';
import type { Batch } from './session-record.ts';
import type { RecordedInput } from '../../trading/recorded-inputs.ts';

/** A question, which has one answer. */
export type Question =
  /** For what was recorded next that the session was told; none at the end. */
  | { readonly kind: 'steps' }
  | { readonly kind: 'load'; readonly options: LoadOptions }
  /** For a port that live bars come to. */
  | { readonly kind: 'live'; readonly source: LiveSource }
  | { readonly kind: 'record'; readonly batch: Batch }
  /** For what people have settled by now. */
  | { readonly kind: 'supervision' };

export interface Answers {
  readonly steps: readonly RecordedInput[];
  readonly load: Dataset;
  readonly live: MessagePort;
  readonly record: true;
  readonly supervision: SessionSupervision;
}

export type FromSession =
  | { readonly question: Question; readonly id: number }
  | { readonly done: PaperDone | undefined }
  | { readonly error: ErrorData; readonly bug?: unknown };

export type ToSession =
  | { readonly id: number; readonly answer: Answers[Question['kind']] }
  | { readonly id: number; readonly error: ErrorData }
  | 'stop';
