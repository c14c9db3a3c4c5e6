import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'take the daemon from the service manager again',
  description: 'Stops the service that `daemon install` has made, and removes it.',
  options: {
    system: { description: 'that of the machine, which takes root, and not that of this user' },
  },
  examples: ['daemon uninstall', 'daemon uninstall --system'],
  async run({ io, message }, _args, { system }) {
    const { serviceManager } = await import('../../../../daemon/service-unit.ts');
    const { uninstallService } = await import('../../service.ts');
    const manager = serviceManager(process.platform, system ? 'system' : 'user', io.env);
    const { removed, untold } = await uninstallService(manager);
    if (untold !== undefined) message(untold);
    const { path } = manager;
    return {
      data: { removed, path },
      show: (out) => out.line(removed ? `${path} is removed.` : `There is no ${path}.`),
    };
  },
});
