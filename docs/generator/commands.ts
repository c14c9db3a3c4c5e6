import { GLOBAL_FLAGS, fullName, optionsOf, type TypedOption } from '../../src/cli/command.ts';
import { loadVerbs, type LoadedVerb } from '../../src/cli/verb.ts';
import { VERBS } from '../../src/cli/verbs.ts';
import { blocks, bullets, code, prose, sentence, table } from './markdown.ts';
import type { Page } from './page.ts';

/** One page for each first word of a command, and a list of all. */
export async function commandPages(): Promise<Page[]> {
  const verbs = await loadVerbs(VERBS);
  const groups = Map.groupBy(verbs, ({ path }) => path[0]!);
  return [
    { path: 'commands/index.md', text: indexPage(verbs) },
    ...[...groups].map(([group, members]) => ({
      path: `commands/${group}.md`,
      text: blocks(`# service-local ${group}`, ...members.map(verbSection)),
    })),
  ];
}

function indexPage(verbs: readonly LoadedVerb[]): string {
  return blocks(
    '# Commands',
    'Every command of `service-local`, with its arguments and options. `service-local help bots deploy` prints the same for a command in the terminal.',
    '## Options of every command',
    bullets(GLOBAL_FLAGS.map(({ long, description }) => `${code(long)}: ${prose(description)}`)),
    '## All commands',
    table(
      ['command', 'purpose'],
      verbs.map(({ path, verb }) => [
        `[${path.join(' ')}](${path[0]}.md#${path.join('-')})`,
        prose(verb.summary),
      ]),
    ),
  );
}

function verbSection({ path, verb }: LoadedVerb): string {
  const args = Object.entries(verb.arguments ?? {});
  const forms = args.map(([name, { variadic, optional }]) => {
    const dots = variadic ? '...' : '';
    return optional ? `[${name}${dots}]` : `<${name}${dots}>`;
  });
  return blocks(
    `## ${path.join(' ')}`,
    sentence(verb.summary),
    verb.description && prose(verb.description),
    `\`\`\`text\n${[fullName(path), ...forms, '[options]'].join(' ')}\n\`\`\``,
    bullets([
      ...args.map(([name, spec]) => `${code(name)}: ${prose(spec.description)}${choices(spec)}`),
      ...optionsOf(verb).map((option) => `${code(formOf(option))}: ${describe(option)}`),
    ]),
    `\`\`\`sh\n${verb.examples.map((example) => `service-local ${example}`).join('\n')}\n\`\`\``,
  );
}

function formOf({ short, long, value }: TypedOption): string {
  const names = short === undefined ? long : `${short}, ${long}`;
  return value === undefined ? names : `${names} <${value}>`;
}

function describe(option: TypedOption): string {
  return `${prose(option.description)}${choices(option)}${option.repeat ? '; can be repeated' : ''}`;
}

function choices({ choices: words }: { readonly choices?: readonly string[] | undefined }): string {
  return words === undefined ? '' : `; one of ${words.map(code).join(', ')}`;
}
