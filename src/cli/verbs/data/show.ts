import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show the contents and the source of a dataset',
  arguments: {
    name: { description: 'name of the dataset' },
  },
  settings: ['catalogue_dir'],
  examples: ['data show SPX', 'data show SPX --json | jq -r .sha256'],
  async run(context, args) {
    const { readManifest } = await import('../../../market/catalogue.ts');
    const manifest = await readManifest(context.settings.catalogue_dir, args.name);
    return {
      data: manifest,
      show(out) {
        out.table(
          [{ title: 'about' }, { title: `catalog://${args.name}` }],
          Object.entries(manifest).map(([key, value]) => [key, [value].flat().join(', ')]),
        );
      },
    };
  },
});
