package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

// adminURL reads the address of an admin listener. Its errors quote nothing: there could be a password in it.
func adminURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("--admin is no URL of an admin listener; write one such as http://127.0.0.1:9090")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, usagef("--admin has a port outside 1 to 65535; write a URL such as http://127.0.0.1:9090")
		}
	}
	return u, nil
}

// badID makes bad usage of what is wrong with an id.
func badID(err error) error {
	if err == nil {
		return nil
	}
	return usagef("%w", err)
}

// failed says why there is no answer, and what to do.
func (s *saleCall) failed(err error) error {
	if _, usage := errors.AsType[*app.UsageError](err); usage {
		return err
	}
	p, refused := errors.AsType[*saleadmin.Problem](err)
	if !refused {
		return s.unanswered(err)
	}
	if s.json {
		if err := printJSON(s.std, p); err != nil {
			return err
		}
	}
	text := s.refusal(p)
	if p.Status == http.StatusBadRequest || p.Status == http.StatusUnprocessableEntity {
		return usagef("%s", text)
	}
	return errors.New(text)
}

// unanswered says what is known of a call to which there is no answer. What could not be sent has not been done.
func (s *saleCall) unanswered(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	dialled := ok && op.Op == "dial"
	text := fmt.Sprintf("%s does not answer: %v", s.admin, unwrapURL(err))
	switch {
	case dialled && s.id != "":
		return fmt.Errorf("%s; nothing was sent; is headgate serve running with --admin there?", text)
	case dialled:
		return fmt.Errorf("%s; is headgate serve running with --admin there?", text)
	case strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return fmt.Errorf("%s; write http:// in --admin", text)
	case s.id != "":
		return fmt.Errorf("%s; it may have been done: to be sure, repeat the command with --id %s", text, s.id)
	}
	return fmt.Errorf("%s; is it the admin listener of a headgate serve?", text)
}

// refusal says what was refused, why, and what to do.
func (s *saleCall) refusal(p *saleadmin.Problem) string {
	text := clean(p.Detail)
	for _, e := range p.Errors {
		text += "\n  " + clean(e.Field+": "+e.Message)
	}
	for _, f := range p.Findings {
		text += "\n  " + clean(f.Severity+": "+whose(f.SKU)+f.Text)
	}
	for _, a := range p.Alarms {
		text += fmt.Sprintf("\n  alarm %s since %s: %s%s", clean(a.Kind), a.Since.Format(time.RFC3339), whose(a.SKU), clean(a.Why))
	}
	if len(p.Alarms) > 0 {
		text += "\n  as instance " + clean(p.Instance) + " knows"
	}
	switch {
	case p.Code == "no_sales":
		return s.admin + " sells nothing: headgate serve runs there without --sale, or it is another server"
	case p.Status == http.StatusUnauthorized:
		return s.admin + " does not know the token; set HEADGATE_ADMIN_TOKEN to one that it knows"
	case p.Code == "forbidden":
		return text + "; set HEADGATE_ADMIN_TOKEN to a token of a higher role (headgate admin token makes one)"
	case p.Status/100 == 3:
		return s.admin + " leads elsewhere, where the token is not sent; write the URL of the admin listener itself"
	case strings.HasPrefix(p.Code, "status_"):
		return fmt.Sprintf("%s answers %d %s, and not as an admin listener does; is there a proxy before it, or is it another server?", s.admin, p.Status, clean(p.Title))
	case p.Code == "unknown_sale":
		return text + "; headgate sale list shows those that there are"
	case p.Code == "unknown_sku":
		return text + "; headgate sale show lists those of a sale"
	case p.Status == http.StatusServiceUnavailable && s.id != "":
		return text + "; it may have been done: to be sure, repeat the command with --id " + s.id
	}
	return text
}

// unwrapURL takes the method and the address away, which have been said.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// numbers gives a command whose last argument is a number an error for one below 0, which passes for a flag.
func numbers(cmd *cobra.Command, name, hint string) *cobra.Command {
	negative := regexp.MustCompile(`^unknown shorthand flag: '\d' in (-\d\S*)$`)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if given := negative.FindStringSubmatch(err.Error()); given != nil {
			return fmt.Errorf("%s is %q; %s", name, given[1], hint)
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

// wholeNumber reads an argument.
func wholeNumber(name, text, hint string, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, usagef("%s is %.40q; %s", name, text, hint)
	}
	return n, nil
}

// limited refuses a --limit that asks for none, or for more than there is.
func limited(limit, most int) error {
	if limit < 1 || limit > most {
		return usagef("--limit is %d; write 1 to %d", limit, most)
	}
	return nil
}
