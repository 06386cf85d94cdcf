// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl show: who holds how much.
#include "commands.hpp"
#include "holdings.hpp"
#include "holdings_format.hpp"
#include "output.hpp"

namespace ctl {

exit_code show(const command_options& options) {
    require_module();
    const holding_report holdings = find_holdings(options);
    user_names users;
    print(options.json ? json_of(holdings, users) : text_of(holdings, users));
    report(holdings.missing);
    return holdings.missing.empty() ? exit_code::success : exit_code::incomplete;
}

} // namespace ctl
