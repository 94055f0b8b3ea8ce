# worker.pl - a process that stays, see dq-handlers(5): keep: 2, run: [/usr/bin/perl, /srv/worker.pl]. Replace work.
use strict;
use warnings;
use Encode;
use JSON::PP;
use MIME::Base64;

sub work { my ($tag, $body) = @_; print "$body\n" }

$| = 1;
open my $reply, '>&=', $ENV{DQ_REPLY_FD} or die "DQ_REPLY_FD: $!";
syswrite $reply, "{\"ready\":true}\n";
while (my $line = <STDIN>) {
    my $task = decode_json($line);
    my %answer = (id => $task->{id}, result => 'done');
    my $body = defined $task->{body} ? encode_utf8($task->{body}) : decode_base64($task->{body_base64});
    eval { work($task->{tag}, $body); 1 }
        or @answer{qw(result error)} = ('retry', "$@");
    syswrite $reply, encode_json(\%answer) . "\n";
}
