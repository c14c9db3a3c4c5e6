import { ServiceError, type Problem } from '../../../base/errors.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'check that datasets are unchanged since their import',
  description:
    'Reads the bars of the catalogue, checks every row, and compares them with the imported bars. ' +
    'Exits with 3 if any dataset has changed.',
  arguments: {
    names: { description: 'names of datasets (default: all)', optional: true, variadic: true },
  },
  settings: ['catalogue_dir'],
  examples: ['data verify', 'data verify SPX BTC-USD --json | jq .datasets[].sound'],
  async run(context, args) {
    const { datasetNames, verifyDataset } = await import('../../../market/catalogue.ts');
    const dir = context.settings.catalogue_dir;
    const names = args.names.length > 0 ? args.names : await datasetNames(dir);
    const datasets: { symbol: string; sound: boolean; problems: readonly Problem[] }[] = [];
    // One at a time, because a dataset can have hundreds of megabytes.
    for (const symbol of names) {
      const problems = await verifyDataset(dir, symbol);
      datasets.push({ symbol, sound: problems.length === 0, problems });
    }
    const unsound = datasets.filter(({ sound }) => !sound);
    return {
      data: { catalogue: dir, datasets },
      show(out) {
        if (datasets.length === 0) return out.line(`${dir} is empty.`);
        const { green, red } = out.style;
        out.table(
          [{ title: 'symbol' }, { title: 'state' }],
          datasets.map(({ symbol, sound }) => [
            symbol,
            sound ? { text: 'intact', paint: green } : { text: 'damaged', paint: red },
          ]),
        );
      },
      failure:
        unsound.length === 0
          ? undefined
          : new ServiceError(
              'invalid_data',
              `${unsound.length} of ${datasets.length} datasets have changed since their import`,
              {
                problems: unsound.flatMap(({ problems }) => problems),
                remedy: 'Import them again with --replace.',
              },
            ),
    };
  },
});
