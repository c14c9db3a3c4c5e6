import type { BotCheck } from '../../bots/load.ts';
import { ServiceError, formatProblem, type Problem } from '../../errors.ts';
import { formatCountOf } from '../../format.ts';
import { defineVerb } from '../verb.ts';

interface FileReport {
  readonly file: string;
  readonly valid: boolean;
  /** Of the spec as authored; `null` when there are problems. */
  readonly hash: string | null;
  readonly problems: readonly Problem[];
  readonly notes: readonly string[];
}

export const verb = defineVerb({
  description:
    'Checks bot files and prints every problem, one line each: file:line:column /pointer CODE ' +
    'message. Also loads the strategy of each bot, tries its models, and looks whether its data are ' +
    'there.',
  arguments: {
    files: { description: 'bot files, YAML or JSON', variadic: true, complete: 'file' },
  },
  settings: ['catalogue_dir'],
  examples: ['validate bot.yaml', 'validate bots/*.yaml --json | jq .files[].problems'],
  async run(context, args) {
    const files: FileReport[] = [];
    for (const file of args.files) files.push(await report(file, context.settings.catalogue_dir));
    for (const { file, notes } of files) {
      for (const note of notes) context.message(`note: ${file}: ${note}`);
    }
    const invalid = files.filter(({ valid }) => !valid);
    const count = invalid.reduce((sum, { problems }) => sum + problems.length, 0);
    return {
      data: { files },
      show(out) {
        for (const { file, valid, problems } of files) {
          if (valid) out.line(`${file}: ${out.style.green('valid')}`);
          for (const problem of problems) out.line(formatProblem(problem));
        }
      },
      failure:
        count === 0
          ? undefined
          : new ServiceError(
              'invalid_spec',
              `${formatCountOf(count, 'problem')} in ${invalid.length} of ${formatCountOf(files.length, 'file')}`,
            ),
    };
  },
});

async function report(file: string, catalogueDir: string): Promise<FileReport> {
  const { checkBot } = await import('../../bots/load.ts');
  try {
    const check = checkBot(file);
    const problems = [
      ...check.problems,
      ...(await missingDatasets(check, catalogueDir)),
      ...(await failingModels(check)),
    ];
    const valid = problems.length === 0;
    const notes = check.bot?.notes ?? [];
    return { file, valid, hash: valid ? check.bot!.hash : null, problems, notes };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const problem = { file, code: error.code, message: error.message };
    return { file, valid: false, hash: null, problems: [problem], notes: [] };
  }
}

async function failingModels({ bot, document }: BotCheck): Promise<readonly Problem[]> {
  if (bot === undefined || bot.models.length === 0) return [];
  const { triedModels } = await import('../../bots/model-checks.ts');
  return triedModels(bot.models, document);
}

async function missingDatasets({ bot, document }: BotCheck, catalogueDir: string) {
  const { resolveDataset } = await import('../../market/catalogue.ts');
  const problems: Problem[] = [];
  for (const [symbol, source] of Object.entries(bot?.data ?? {})) {
    try {
      await resolveDataset(catalogueDir, source);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const field = bot?.spec.spec.data.source === undefined ? ['sources', symbol] : ['source'];
      const what = { code: 'data_not_found', message: error.message };
      problems.push(document.problem(['spec', 'data', ...field], what));
    }
  }
  return problems;
}
