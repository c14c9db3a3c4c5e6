import { readdirSync } from 'node:fs';
import type { Verb, VerbEntry } from './verb.ts';

/** First words of the verbs, in the order of the help. */
const GROUPS = [
  'init',
  'validate',
  'backtest',
  'plan',
  'runs',
  'data',
  'server',
  'events',
  'worker',
  'run',
  'login',
  'logout',
  'whoami',
  'bots',
  'mcp',
  'knowledge',
  'risk',
  'notifications',
  'tasks',
  'searches',
  'identity',
  'license',
  'daemon',
  'cloud',
  'doctor',
  'schema',
  'config',
  'completion',
];

const DIRECTORY = new URL('verbs/', import.meta.url);

/** All verbs. The path of a verb is the path of its file: `bots/deploy/status.ts`. */
export const VERBS: readonly VerbEntry[] = findVerbs();

function findVerbs(): VerbEntry[] {
  const files = readdirSync(DIRECTORY, { recursive: true, encoding: 'utf8' });
  const verbs = files.flatMap((file) => {
    const name = /^(.*?)(?<!\.d)\.[jt]s$/.exec(file.replaceAll('\\', '/'))?.[1];
    if (name === undefined) return [];
    const url = new URL(file, DIRECTORY).href;
    const load = (): Promise<{ readonly verb: Verb }> =>
      import(url) as Promise<{ readonly verb: Verb }>;
    return [{ path: name.split('/'), load }];
  });
  return verbs.sort(byGroup);
}

function byGroup({ path: a }: VerbEntry, { path: b }: VerbEntry): number {
  const group = ([word = '']: readonly string[]): number => GROUPS.indexOf(word);
  // Loading a collator takes longer than the whole sort.
  return group(a) - group(b) || (a.join(' ') < b.join(' ') ? -1 : 1);
}
