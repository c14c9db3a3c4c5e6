import { requireSettingKey } from '../../../base/resolve-settings.ts';
import { FLAG_SETTINGS, SETTINGS, SETTING_KEYS, environmentName } from '../../../base/settings.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show which source sets the value of a setting, and which sources it overrides',
  arguments: {
    setting: { description: 'name of the setting', complete: SETTING_KEYS },
  },
  settings: FLAG_SETTINGS,
  examples: ['config explain workers', 'config explain runs_dir --json'],
  run({ settingSources }, args) {
    const key = requireSettingKey(args.setting);
    const [winner, ...losers] = settingSources[key];
    const { description, type } = SETTINGS[key];
    return {
      data: { setting: key, description, type: type.name, winner, losers },
      show(out) {
        out.line(`${out.style.bold(key)}: ${description} (${type.name}; ${environmentName(key)})`);
        out.line();
        out.table(
          [{ title: '' }, { title: 'value' }, { title: 'from' }],
          [
            [{ text: 'in force', paint: out.style.green }, String(winner.value), winner.origin],
            ...losers.map(({ value, origin }) => [
              { text: 'overridden', paint: out.style.dim },
              String(value),
              origin,
            ]),
          ],
        );
      },
    };
  },
});
