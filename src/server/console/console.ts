/**
 * The web console. Each area registers its pages by an entry in `AREAS`. Pages hold no logic: they
 * read and change everything through the API, by `visit.call`.
 */
import { ServiceError } from '../../base/errors.ts';
import type { App, Services } from '../services.ts';
import { addAccountPages } from './account.ts';
import { assetAt, ASSETS_PATH } from './assets.ts';
import { addAssessments } from './assessment/assessment.ts';
import { addAuditPages } from './audit.ts';
import { addBotPages } from './bots.ts';
import { addAnalyses } from './bot-analyses.ts';
import { addChat } from './chat.ts';
import { addComparison } from './comparison.ts';
import { addHaltPages } from './halts.ts';
import { addCustomerPages } from './license-customers.ts';
import { addDevicePages } from './license-devices.ts';
import { addIssuePages } from './license-issue.ts';
import { addKeyPages } from './license-keys.ts';
import { addLeasePages } from './license-lease.ts';
import { addRevokePages } from './license-revoke.ts';
import { addLicensePages } from './license.ts';
import { addNotificationPages } from './notifications.ts';
import { addOverviewPage } from './overview.ts';
import { pagesOf, type Pages } from './pages.ts';
import { addSignIn } from './sign-in.ts';
import { addStepUp } from './step-up.ts';
import { addTaskRows } from './task-rows.ts';
import { addTaskTrades } from './task-trades.ts';
import { addTaskPages } from './tasks.ts';

const AREAS: readonly ((pages: Pages, services: Services) => void)[] = [
  addOverviewPage,
  addLicensePages,
  addLeasePages,
  addIssuePages,
  addRevokePages,
  addKeyPages,
  addDevicePages,
  addCustomerPages,
  addAuditPages,
  addHaltPages,
  addNotificationPages,
  addBotPages,
  addAssessments,
  addAnalyses,
  // Before the pages of tasks, whose path would match, too.
  addComparison,
  addTaskPages,
  addTaskRows,
  addTaskTrades,
  addChat,
  addAccountPages,
  addStepUp,
];

export function addConsole(app: App, services: Services): void {
  app.get(`${ASSETS_PATH}*`, (c) => {
    const asset = assetAt(c.req.path);
    if (asset === undefined)
      throw new ServiceError('not_found', 'this file is not part of the console', {
        remedy: 'Reload the page that refers to it.',
      });
    // The URL contains a hash of the content.
    c.header('Cache-Control', 'public, max-age=31536000, immutable');
    return c.body(asset.body, 200, { 'Content-Type': asset.type });
  });
  const pages = pagesOf(app, services);
  addSignIn(app, pages, services);
  for (const add of AREAS) add(pages, services);
}
