import { ServiceError, type Problem } from '../errors.ts';
import { isAddress } from '../market/catalogue.ts';
import type { Path, SourceDocument } from './document.ts';
import { inOrder, parseSpec } from './parse.ts';
import type { BotSpec } from './spec.ts';
import { specHash } from './version.ts';

/** A spec as somebody sends it to a server: as data, or as the text of a file. */
export type SentSpec =
  | { readonly document: Readonly<Record<string, unknown>> }
  | { readonly yaml: string };

/** A spec that a server takes. */
export interface HostedSpec {
  /** As its author wrote it. */
  readonly document: unknown;
  /** The same with its defaults filled in. */
  readonly spec: BotSpec;
  /** See `specHash`. */
  readonly hash: string;
}

/**
 * Checks a spec as `service-local validate` does, and that nothing of it is on the machine of its
 * author.
 *
 * @throws ServiceError `invalid_spec` with every problem; their pointers are into the spec.
 */
export function readHostedSpec(sent: SentSpec): HostedSpec {
  const isText = 'yaml' in sent;
  const { spec, document, problems } = parseSpec(
    isText ? sent.yaml : JSON.stringify(sent.document),
    'the spec',
  );
  const all = [...problems, ...(spec ? hostedProblems(spec, document) : [])];
  if (spec === undefined || all.length > 0) throw invalidSpec(inOrder(all), isText);
  return { document: document.value, spec, hash: specHash(document.value) };
}

/** @param isText whether whoever sent it can look at a line of it. */
export function invalidSpec(problems: readonly Problem[], isText: boolean): ServiceError {
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  return new ServiceError('invalid_spec', `the spec has ${count}`, {
    problems: problems.map((problem) => {
      const { line, column, message } = problem;
      const place = isText && line !== undefined ? `line ${line}, column ${column}: ` : '';
      return { ...problem, message: place + message };
    }),
  });
}

function hostedProblems({ metadata, spec }: BotSpec, document: SourceDocument): Problem[] {
  const { source, sources } = spec.data;
  const { module } = spec.strategy;
  return [
    ...(UUID.test(metadata.slug)
      ? [
          document.problem(['metadata', 'slug'], {
            code: 'invalid_value',
            message: 'must not have the form of an id, which the server gives to each bot',
          }),
        ]
      : []),
    ...(source === undefined ? [] : sourceProblems(source, ['spec', 'data', 'source'], document)),
    ...Object.entries(sources ?? {}).flatMap(([symbol, one]) =>
      sourceProblems(one, ['spec', 'data', 'sources', symbol], document),
    ),
    ...(module === undefined
      ? []
      : [
          document.problem(['spec', 'strategy', 'module'], {
            code: 'module_not_hosted',
            message:
              'a server runs no code but its own: name a built-in strategy, or run the bot on your own machine',
          }),
        ]),
  ];
}

/** So that a slug is never taken for a `bot_id`. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function sourceProblems(source: string, at: Path, document: SourceDocument): Problem[] {
  if (isAddress(source)) return [];
  const what = {
    code: 'data_not_hosted',
    message:
      'a server reads no file of your machine: have the data imported into its catalogue with `service-local data import`, and name them as catalog://NAME',
  };
  return [document.problem(at, what)];
}
