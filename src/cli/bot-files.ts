/** Apart from `bots.ts`, because it loads what reads and checks bot files. */
import type { SourceDocument } from '../bots/document.ts';
import { hostedProblems } from '../bots/hosted.ts';
import { inOrder, readSpec } from '../bots/parse.ts';
import type { Problem } from '../errors.ts';
import { invalidFiles, type BotFile } from './bots.ts';

/**
 * Reads bot files as they are sent to a server: it has none of the files beside them.
 * @throws ServiceError `invalid_spec` with the problems of all files, or `file_not_found`
 */
export function readHostedFiles(files: readonly string[]): readonly BotFile[] {
  return readBotFiles(files, hostedProblems);
}

/**
 * The same of any bot files; of strategies and data, nothing is looked at.
 * @param check finds further problems.
 */
export function readBotFiles(
  files: readonly string[],
  check: (document: SourceDocument) => readonly Problem[] = () => [],
): readonly BotFile[] {
  const read = files.map((file) => {
    const { spec, document, problems } = readSpec(file);
    return { file, spec, document, problems: inOrder([...problems, ...check(document)]) };
  });
  const wrong = read.filter(({ problems }) => problems.length > 0);
  if (wrong.length > 0) {
    throw invalidFiles(
      wrong.map(({ file }) => file),
      wrong.flatMap(({ problems }) => problems),
    );
  }
  return read.map(({ file, spec, document }) => ({
    file,
    slug: spec!.metadata.slug,
    document: document.value as BotFile['document'],
    source: document,
  }));
}
