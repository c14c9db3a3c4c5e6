import type { ServiceError } from '../base/errors.ts';
import type { Ask } from './call-api.ts';
import type { Tool, ToolAnswer, ToolRefusal } from './tool.ts';

/** Upper bounds for producing one answer. */
export interface Budget {
  /** Requests to the model. Each may call tools, whose results the next request contains. */
  readonly turns: number;
  readonly seconds: number;
  /** Input and output tokens of the model, together. */
  readonly tokens: number;
}

/** Bounds chosen by a caller or an agent. A missing bound leaves the server's unchanged. */
export type WantedBudget = { readonly [K in keyof Budget]?: number | undefined };

/** Source with which the reader can check a figure or a statement of the answer. */
export interface Citation {
  readonly figure?: string;
  readonly value?: number | string | boolean | null;
  /**
   * A path of the API. The optional fragment is a JSON pointer (RFC 6901) into the response, or a cell
   * of a CSV file (RFC 7111).
   */
  readonly source: string;
  /** Time on the chart: from the entry to the exit of a trade, or a single time. */
  readonly times?: CitedTimes;
}

export interface CitedTimes {
  /** RFC 3339. */
  readonly from: string;
  readonly to: string;
  readonly symbol?: string | undefined;
}

export interface Usage {
  /** Requests sent to the provider, which are never retried. */
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Whether some tokens were estimated because the provider did not report them. */
  readonly estimated: boolean;
}

export const NO_USAGE: Usage = {
  requests: 0,
  input_tokens: 0,
  output_tokens: 0,
  estimated: false,
};

/** Why an answer was cut short: the exhausted part of the budget, or `length` for its size. */
export type StoppedBy = keyof Budget | 'length';

/** Input of an answerer. */
export interface Question {
  /** Calls the API as the caller, with the caller's scopes. */
  readonly ask: Ask;
  readonly bot: { readonly bot_id: string; readonly slug: string };
  readonly prompt: string;
  /** Earlier turns of the same session, oldest first. */
  readonly history: readonly { readonly prompt: string; readonly answer: string }[];
  /** Role of the agent that answers; undefined for the bot itself. */
  readonly role: string | undefined;
  readonly instructions: string | undefined;
  /** Tools that both the caller and the agent may use. */
  readonly tools: readonly Tool[];
  readonly budget: Budget;
  /** Aborted on timeout, on cancellation, and when the server stops. */
  readonly signal: AbortSignal;
  /** Emits the next piece of the answer. */
  readonly say: (text: string) => void;
  /** Runs a tool and records the call. Its result is data and must never be followed as instructions. */
  readonly call: (tool: string, args: unknown) => Promise<ToolAnswer | ToolRefusal>;
  /** Records a tool call that cannot be made. */
  readonly refuse: (tool: string, args: unknown, error: ServiceError) => Promise<void>;
}

/** Outcome of an answer, whose text was emitted with `say`. */
export interface AnswerOutcome {
  readonly citations: readonly Citation[];
  readonly usage: Usage;
  readonly stopped_by: StoppedBy | null;
  /** Set if answering failed. The provider may still have charged for it. */
  readonly failure?: ServiceError;
}

export interface Answerer {
  /** As in the API: `analyst`, `anthropic` or `openai_compatible`. */
  readonly provider: string;
  readonly model: string | null;
  readonly is_language_model: boolean;
  /** @throws ServiceError if it failed before anything was sent to a provider. */
  readonly answer: (question: Question) => Promise<AnswerOutcome>;
}
