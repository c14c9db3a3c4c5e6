import { FLAG_SETTINGS, SETTING_KEYS } from '../../../base/settings.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the effective settings and the source of each',
  settings: FLAG_SETTINGS,
  examples: ['config list', 'config list --json | jq .workers.origin'],
  run({ settingSources }) {
    const rows = SETTING_KEYS.map((key) => ({ key, ...settingSources[key][0] }));
    return {
      data: Object.fromEntries(rows.map(({ key, value, origin }) => [key, { value, origin }])),
      show(out) {
        out.table(
          [{ title: 'setting' }, { title: 'value' }, { title: 'from' }],
          rows.map(({ key, value, origin }) => [key, String(value), origin]),
        );
      },
    };
  },
});
