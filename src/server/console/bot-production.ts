import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type {
  getProductionDeployment,
  ProductionDeployment,
  stopDeployment,
} from '../../api/deployments.ts';
import { botPath, shortId, taskPath } from './bot-parts.ts';
import type { Child, Html } from './html.ts';
import { badge, facts, table, time } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

type State = NonNullable<ProductionDeployment['cluster_state']>;

const PHASES = {
  missing: 'bad',
  progressing: 'neutral',
  ready: 'good',
  degraded: 'bad',
  scaled_down: 'neutral',
} as const satisfies Record<State['phase'], string>;

export function addProduction(pages: Pages, show: Parameters<Pages['post']>[2]): void {
  pages.post(
    '/console/bots/:bot_ref/deploy/:task_id/stop',
    async ({ call, param }) => {
      const bot_ref = param('bot_ref');
      const params = { bot_ref, task_id: param('task_id') };
      const path = '/bots/{bot_ref}/deploy/stop/{task_id}';
      await call<typeof stopDeployment>('post', path, { params });
      return {
        goTo: botPath(bot_ref, 'runs'),
        message: 'The deployment is stopping. It cancels its orders first.',
      };
    },
    show,
  );
}

/** The deployments of a bot in clusters; empty if it has none. */
export async function productionSection(
  { call }: Pick<Visit, 'call'>,
  { id, active_deployments }: BotDetail,
): Promise<Child> {
  const active = active_deployments.filter(({ target }) => target === 'k8s');
  if (active.length === 0) return '';
  const all = await Promise.all(
    active.map(({ deployment_id }) => deploymentOf({ call }, id, deployment_id)),
  );
  return html`<section>
    <h2 id="production">In production</h2>
    ${all.map(
      (one) =>
        html`<h3><a href="${taskPath(one.task_id)}">${shortId(one.deployment_id)}</a></h3>
          ${deploymentFacts(one)}`,
    )}
  </section>`;
}

export function deploymentOf(
  { call }: Pick<Visit, 'call'>,
  bot_ref: string,
  deployment_id: string,
): Promise<ProductionDeployment> {
  const path = '/bots/{bot_ref}/deployments/{deployment_id}';
  return call<typeof getProductionDeployment>('get', path, { params: { bot_ref, deployment_id } });
}

/** The cluster, the runner and the pods of a deployment, as last reported. */
export function deploymentFacts(deployment: ProductionDeployment): Html {
  const { version, cluster, namespace, cluster_state: state, runner, waits, replaces } = deployment;
  const { status, denying, venue, reported_at, claimed, ended } = runner;
  return html`${facts(
    ['Version', String(version)],
    ['Cluster', html`<code>${cluster}</code>, namespace <code>${namespace}</code>`],
    ...(waits ? [['Waiting', html`for <code>${replaces}</code> to end`] as const] : []),
    ['State', state === null ? 'not known yet' : stateText(state)],
    [
      'Runner',
      status === null
        ? 'has not reported yet'
        : html`${badge(claimed ? (denying === null ? 'good' : 'warning') : 'neutral', status)}
          ${denying}`,
    ],
    ...(reported_at === null ? [] : [['Last report', time(reported_at)] as const]),
    ...(venue === null
      ? []
      : [
          [
            'Venue',
            `${venue.connected ? 'connected' : 'not connected'}, ${venue.open_orders ?? 'unknown'} open orders`,
          ] as const,
        ]),
    ...(ended === null
      ? []
      : [
          [
            'Final orders',
            ended.verified ? badge('good', 'verified') : badge('bad', 'not verified'),
          ] as const,
        ]),
  )}
  ${state !== null && state.pods.length > 0 && podTable(state.pods)}`;
}

function stateText({ phase, reason, message, observed_at }: State): Html {
  const kind = reason === 'unreachable' ? 'warning' : PHASES[phase];
  const text = reason === 'unreachable' ? 'unreachable' : phase.replace('_', ' ');
  return html`${badge(kind, text)} ${message ?? reason ?? ''}
    <span class="sub">observed ${time(observed_at)}</span>`;
}

function podTable(pods: State['pods']): Html {
  return table<State['pods'][number]>(
    'Pods',
    [
      { title: 'Pod', isHeader: true, cell: ({ name }) => html`<code>${name}</code>` },
      { title: 'Phase', cell: ({ phase }) => phase },
      { title: 'Ready', cell: ({ ready }) => (ready ? 'yes' : 'no') },
      { title: 'Restarts', isNumber: true, cell: ({ restarts }) => String(restarts) },
      { title: 'Message', cell: ({ message, reason }) => message ?? reason ?? '' },
    ],
    pods,
  );
}
