import { ServiceError } from '../../../base/errors.ts';
import { formatCount, NO_VALUE } from '../../../base/format.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the datasets of the catalogue',
  settings: ['catalogue_dir'],
  examples: ['data list', 'data list --json | jq -r .datasets[].symbol'],
  async run(context) {
    const { datasetNames, readManifest } = await import('../../../market/catalogue.ts');
    const dir = context.settings.catalogue_dir;
    // A damaged dataset must not hide the others.
    const listed = async (symbol: string) => {
      try {
        return await readManifest(dir, symbol);
      } catch (error) {
        if (error instanceof ServiceError) return { symbol, problem: error.message };
        throw error;
      }
    };
    const datasets = await Promise.all((await datasetNames(dir)).map(listed));
    return {
      data: { catalogue: dir, datasets },
      show(out) {
        if (datasets.length === 0) {
          out.line(`${dir} is empty; fill it with \`service-local data import FILE\`.`);
          return;
        }
        out.table(
          [
            { title: 'symbol' },
            { title: 'timeframe' },
            { title: 'bars', align: 'right' },
            { title: 'from' },
            { title: 'to' },
            { title: 'imported from' },
          ],
          datasets.map((dataset) => {
            if ('problem' in dataset) {
              const problem = { text: dataset.problem, paint: out.style.red };
              return [dataset.symbol, NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE, problem];
            }
            const { symbol, timeframe, rows, from, to, origin } = dataset;
            return [symbol, timeframe, formatCount(rows), from, to, origin];
          }),
        );
      },
    };
  },
});
