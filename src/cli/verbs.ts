import type { Verb } from './verb.ts';

/** One verb of the CLI. Its file is loaded only when the verb is run or its own help is shown. */
export interface VerbEntry {
  /** The words that call it. A longer path wins: `backtest sweep` over `backtest`. */
  readonly path: readonly string[];
  /** One line for the list of verbs, without a full stop. */
  readonly summary: string;
  readonly load: () => Promise<{ readonly verb: Verb }>;
}

/** Every verb, in the order in which help lists them. */
export const VERBS: readonly VerbEntry[] = [
  {
    path: ['backtest'],
    summary: 'run a bot over its history and report what came of it',
    load: () => import('./verbs/backtest.ts'),
  },
  {
    path: ['backtest', 'sweep'],
    summary: 'run a bot with every combination of parameters',
    load: () => import('./verbs/backtest-sweep.ts'),
  },
  {
    path: ['config', 'list'],
    summary: 'list the settings in force and where each comes from',
    load: () => import('./verbs/config-list.ts'),
  },
  {
    path: ['config', 'explain'],
    summary: 'say which source decides a setting, and which ones lost',
    load: () => import('./verbs/config-explain.ts'),
  },
  {
    path: ['completion'],
    summary: 'print the completion script for a shell',
    load: () => import('./verbs/completion.ts'),
  },
];
