import type { DataReading } from '../../bots/data-checks.ts';
import type { Bot, BotCheck, LoadModule } from '../../bots/load-bot.ts';
import type { WarmUpReport } from '../../bots/warm-up-need.ts';
import { ServiceError, type Problem } from '../../base/errors.ts';
import { formatProblem } from '../../base/format-problem.ts';
import { formatCountOf } from '../../base/format.ts';
import { DATA_OPTIONS } from '../data-options.ts';
import { defineVerb, type Context } from '../verb.ts';

interface FileReport {
  readonly file: string;
  readonly valid: boolean;
  /** Hash of the spec as authored; `null` if there are problems. */
  readonly hash: string | null;
  readonly problems: readonly Problem[];
  readonly notes: readonly string[];
  /** History that declared indicators need; absent without any, and if there are problems. */
  readonly warm_up?: WarmUpReport | undefined;
}

export const verb = defineVerb({
  summary: 'check bot files and report every problem',
  description:
    'Checks bot files and prints every problem, one line each: file:line:column /pointer CODE ' +
    'message. Loads the strategy of each bot, tries its models and reads its data; bad rows of a CSV ' +
    'file are reported with the line of that file.',
  arguments: {
    files: { description: 'bot files, YAML or JSON', variadic: true, complete: 'file' },
  },
  options: {
    ...DATA_OPTIONS,
    checkWake: {
      description:
        'run each bot with and without its wakeOn, and name the first event that differs',
    },
  },
  settings: ['catalogue_dir', 'strategy_timeout_seconds', 'strategy_memory_mb'],
  examples: [
    'validate bot.yaml',
    'validate bots/*.yaml --json | jq .files[].problems',
    'validate bot.yaml --repair drop',
    'validate bot.yaml --check-wake',
  ],
  async run(context, args, { columns, repair, checkWake }) {
    const catalogueDir = context.settings.catalogue_dir;
    const files: FileReport[] = [];
    const { ownStrategiesOf } = await import('../own-strategies.ts');
    for (const file of args.files) {
      const strategies = ownStrategiesOf(context);
      const found = await report(file, strategies.load, { catalogueDir, columns, repair });
      const isRun = checkWake && found.valid;
      files.push(isRun ? await withWake(found, context, { columns, repair }) : found);
      await strategies.close();
    }
    for (const { file, valid, notes } of files) {
      if (valid) for (const note of notes) context.message(`note: ${file}: ${note}`);
    }
    const invalid = files.filter(({ valid }) => !valid);
    const count = invalid.reduce((sum, { problems }) => sum + problems.length, 0);
    return {
      data: { files },
      show(out) {
        for (const { file, valid, problems, notes } of files) {
          if (valid) out.line(`${file}: ${out.style.green('valid')}`);
          for (const problem of problems) out.line(formatProblem(problem));
          // They include remedies of the problems.
          if (!valid) for (const note of notes) out.line(`note: ${file}: ${note}`);
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

async function report(file: string, load: LoadModule, reading: DataReading): Promise<FileReport> {
  const { checkBot } = await import('../../bots/load-bot.ts');
  const { checkData } = await import('../../bots/data-checks.ts');
  const { inOrder } = await import('../../bots/parse.ts');
  try {
    const check = checkBot(file, load);
    const data = await checkData(check, reading);
    const isOfSpec = (problem: Problem): boolean => problem.file === file;
    const found = [...check.problems, ...data.problems, ...(await failingModels(check))];
    // Problems of the spec come first, then problems of data files.
    const problems = [
      ...inOrder(found.filter(isOfSpec)),
      ...found.filter((problem) => !isOfSpec(problem)),
    ];
    const hash = problems.length === 0 ? check.bot!.hash : null;
    const notes = [...(check.bot?.notes ?? []), ...data.notes];
    const warmUp = data.warmUp && { warm_up: data.warmUp };
    return { file, valid: problems.length === 0, hash, problems, notes, ...warmUp };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const message = [error.message, error.remedy].filter(Boolean).join('. ');
    const problem = { file, code: error.code, message };
    return { file, valid: false, hash: null, problems: [problem], notes: [] };
  }
}

/** The report with the result of running the bot with and without `wakeOn`. */
async function withWake(
  found: FileReport,
  context: Context,
  overrides: Pick<DataReading, 'columns' | 'repair'>,
): Promise<FileReport> {
  const { loadBot } = await import('../../bots/load-bot.ts');
  const { wakeDifference } = await import('../../bots/check-wake.ts');
  const { ownStrategiesOf } = await import('../own-strategies.ts');
  const { file, notes } = found;
  const strategies = ownStrategiesOf(context);
  const { catalogue_dir: catalogueDir, strategy_timeout_seconds: seconds } = context.settings;
  const options = { catalogueDir, timeoutMs: seconds * 1000, signal: context.signal };
  const invalid = (problem: Omit<Problem, 'file'>): FileReport => ({
    ...found,
    valid: false,
    hash: null,
    problems: [{ file, ...problem }],
  });
  try {
    const load = (): Bot =>
      loadBot(file, { params: {}, from: undefined, to: undefined, ...overrides }, strategies.load);
    const message = await wakeDifference(load, options);
    if (message !== undefined) return invalid({ code: 'wake_on_differs', message });
    return { ...found, notes: [...notes, 'the events are the same with and without wakeOn'] };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code === 'interrupted') throw error;
    return invalid({ code: error.code, message: error.message });
  } finally {
    await strategies.close();
  }
}

async function failingModels({ models, document }: BotCheck): Promise<readonly Problem[]> {
  if (models.length === 0) return [];
  const { triedModels } = await import('../../bots/model-checks.ts');
  try {
    return await triedModels(models, document);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const message = [error.message, error.remedy].filter(Boolean).join('. ');
    return [document.problem(['spec', 'ml_models'], { code: error.code, message })];
  }
}
