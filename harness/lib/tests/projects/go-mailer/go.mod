module example.org/team/mailer

go 1.22
