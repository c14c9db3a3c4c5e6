import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { exampleDocument } from '../../../src/api/bots.ts';
import { parseInvocation } from '../../../src/cli/command.ts';
import { findVerb } from '../../../src/cli/main.ts';
import { VERBS } from '../../../src/cli/verbs.ts';
import { commandsOf, namedCommandsOf, PAGES, REFERENCE } from '../../docs/documents.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { researchDocument } from '../../research/talk.ts';
import { newSignedIn, type Visitor } from './visitor.ts';

const root = join(import.meta.dirname, '../../..');

/** Splits a command into words as a shell does. */
function wordsOf(command: string): string[] {
  const words = command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g);
  return [...words].map(([, double, single, plain]) => double ?? single ?? plain!);
}

/** @throws ServiceError `usage` if the CLI rejects the command. */
async function parse(command: string): Promise<void> {
  const [program, ...words] = wordsOf(command);
  expect(program).toBe('service-local');
  const { entry, rest } = findVerb(VERBS, words);
  if (entry === undefined) throw new Error(`unknown command: ${command}`);
  const { verb } = await entry.load();
  parseInvocation(entry.path, verb, rest);
}

async function faultsOf(commands: readonly string[]): Promise<string[]> {
  const faults = await Promise.all(
    [...new Set(commands)].map((command) =>
      parse(command).then(
        () => [],
        (error: Error) => [`${command}: ${error.message}`],
      ),
    ),
  );
  return faults.flat();
}

/** Ignores faults of texts that name a command without its arguments or with a placeholder. */
function missingOf(faults: readonly string[]): string[] {
  return faults.filter(
    (fault) => !/missing required argument|required option|'1' is no/.test(fault),
  );
}

describe('pages name only commands that the CLI accepts', () => {
  let server: TestApp;
  let visitor: Visitor;
  beforeAll(async () => {
    server = await newTestApp();
    ({ visitor } = await newSignedIn(server));
  });
  afterAll(() => server.close());

  async function commandsAt(path: string): Promise<string[]> {
    const { text } = await visitor.open(path);
    return [...text.matchAll(/<code\s*>(service-local [^<]*)<\/code/g)].map(([, command]) =>
      command!.replaceAll('&quot;', '"').replaceAll('&amp;', '&').replaceAll(/\s+/g, ' ').trim(),
    );
  }

  const PATHS = [
    'bots',
    'tasks',
    'tasks?status=running',
    'halts',
    'halts/all',
    'audit',
    'account',
  ].map((path) => `/console/${path}`);
  const LICENSES = ['', '/customers', '/devices', '/keys', '/issue'].map(
    (path) => `/identity/license${path}`,
  );

  it('on an empty server', async () => {
    const all = (await Promise.all([...PATHS, ...LICENSES].map(commandsAt))).flat();
    expect(all.length).toBeGreaterThan(5);
    expect(await faultsOf(all)).toEqual([]);
  });

  it('for trading and research bots', async () => {
    for (const document of [exampleDocument('trader', 10), researchDocument('talk')]) {
      await visitor.fetch('POST', '/bots', { document });
    }
    const pages = ['', '/events', '/runs', '/versions', '/backtest', '/paper', '/halt'];
    const paths = ['trader', 'talk'].flatMap((slug) =>
      pages.map((page) => `/console/bots/${slug}${page}`),
    );
    const all = (await Promise.all(paths.map(commandsAt))).flat();
    expect(all).toContain('service-local bots backtest talk');
    expect(await faultsOf(all)).toEqual([]);
  });

  it('offer no paper session for a research bot', async () => {
    for (const page of ['', '/runs', '/paper']) {
      const { status, text } = await visitor.open(`/console/bots/talk${page}`);
      expect(status).toBe(200);
      expect(text).not.toMatch(/Paper session…|paper start|Start the paper session/);
      expect((await visitor.open(`/console/bots/trader${page}`)).text).toMatch(/aper session/);
    }
  });
});

/** Values for the placeholders of texts, by name. */
const VALUES: readonly (readonly [name: RegExp, value: string])[] = [
  [/hash/, '0'.repeat(64)],
  [/origin|url/i, 'https://bots.example'],
];

function filled(text: string): string {
  return text.replaceAll(/\$\{([^}]*)\}/g, (_, name: string) => {
    const [, value = '1'] = VALUES.find(([pattern]) => pattern.test(name)) ?? [];
    return value;
  });
}

/** Commands in the texts of sources. Those whose verb is a placeholder are checked on the pages. */
function commandsIn(pattern: string): string[] {
  return globSync(pattern, { cwd: root }).flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    const quoted = text.matchAll(
      /\\`(service-local [a-z][^`]*?)\\`|[`'>](service-local [a-z][^`'<]*)[`'<]/g,
    );
    return [...quoted]
      .map(([, inText, whole]) => (inText ?? whole)!.replaceAll(/\s+/g, ' ').trim())
      .filter(
        (command) =>
          !/^service-local (?:needs|probe|license binding v1|(?:bots |identity )?\$)/.test(command),
      )
      .map(filled)
      .filter((command) => !command.includes('${'));
  });
}

it('the console names no command that the CLI rejects', async () => {
  const commands = commandsIn('src/server/console/**/*.ts');
  expect(commands.length).toBeGreaterThan(20);
  expect(await faultsOf(commands)).toEqual([]);
});

it('no message names a command or an option that the CLI does not have', async () => {
  const commands = commandsIn('src/**/*.ts');
  expect(commands.length).toBeGreaterThan(50);
  expect(missingOf(await faultsOf(commands))).toEqual([]);
});

test.each(PAGES)('%s shows no command that the CLI rejects', async (page) => {
  expect(await faultsOf(commandsOf(page))).toEqual([]);
  expect(missingOf(await faultsOf(namedCommandsOf(page)))).toEqual([]);
});

test('the reference shows no command that the CLI rejects', async () => {
  const commands = REFERENCE.flatMap(commandsOf);
  expect(commands.length).toBeGreaterThan(200);
  expect(await faultsOf(commands)).toEqual([]);
  expect(missingOf(await faultsOf(REFERENCE.flatMap(namedCommandsOf)))).toEqual([]);
});
